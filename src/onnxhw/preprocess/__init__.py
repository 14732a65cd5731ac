"""Inputs of a model from .npy and .npz files, images and folders of them, one inference at a time.

formula     (x * scale - mean) / std, per channel
samples     .npy, .npz; labels
images      files and folders, by Pillow
"""

from .formula import Input, Preprocess
from .samples import Samples, open_samples

__all__ = ["Input", "Preprocess", "Samples", "open_samples"]
