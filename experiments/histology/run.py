"""Run all stages in order. Finished work is not repeated, so a run that was stopped continues.

python experiments/histology/run.py --data FOLDER --out OUT [--weights STATE_DICT]
python experiments/histology/run.py --small --out OUT
"""

from __future__ import annotations

from explain import explain
from page import page
from setting import claimed
from shifts import shifts
from studies import studies
from train import train

if __name__ == "__main__":
    setting = claimed(__doc__)
    train(setting)
    explain(setting)
    studies(setting)
    shifts(setting)
    page(setting)
