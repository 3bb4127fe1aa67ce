"""Neighbours: captum's `attribute`, shap's Explanation, quantus' explain function, scikit-learn pipelines.

Each module needs the package it is named after (extra `interop`), and nothing else of gralis needs any of them.
"""
