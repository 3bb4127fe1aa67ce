"""Planted evidence: small networks trained on data in which it is known what decides, and methods scored against it.

scenes      what is drawn: marks that decide, marks that count only together, and a distractor
worlds      how a scene becomes a picture, a row of a table or a sentence
networks    the small networks, and their training
tasks       which network learns which scene; the tasks by name
scoring     one trained task: which method finds the evidence, and do its intervals hold
run_tasks   `run`: all tasks, kept in a folder that a stopped run continues
markdown    the scores of all tasks as one table
"""

from gralis.planted.markdown import summary
from gralis.planted.run_tasks import run
from gralis.planted.scenes import Scene
from gralis.planted.scoring import METHODS, PlantedScore, score_task
from gralis.planted.tasks import TASKS, PlantedTask, Trained

__all__ = ["METHODS", "TASKS", "PlantedScore", "PlantedTask", "Scene", "Trained", "run", "score_task", "summary"]
