"""What may be wrong, and by how much; arithmetic on ledger rows and replicates, no model."""
