"""Model calls: points are built, batched and evaluated here, and nowhere else."""
