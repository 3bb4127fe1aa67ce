"""Pictures from files: turned upright, limited in size, cropped to the centre, and normalised for the network."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.results.explanation import Explanation

__all__ = ["IMAGENET_MEAN", "IMAGENET_STD", "Preprocessing"]

#: The means and deviations that networks trained on ImageNet expect, for red, green and blue in [0, 1].
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
MOST_PIXELS = 64_000_000  # more is a mistake or a decompression bomb
SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm"})
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")  # none of them is read by running another program
_MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr")  # 8 bits per channel


@dataclass(frozen=True)
class Preprocessing:
    """Crops a picture to its largest centred part with the shape (height, width), scales it, then (value - mean) / std.

    Parameters
    ----------
    height, width : int, default=224
        The size of the result in pixels.
    mean, std : tuple of float, default=those of ImageNet
        For values in [0, 1]: one number for grey pictures with one channel, three for red, green and blue.
    """

    height: int = 224
    width: int = 224
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std) or len(self.mean) not in (1, 3):
            raise GralisError(f"mean and std must have one number each, or three. Got {self.mean} and {self.std}.")
        if not all(0 < s < np.inf for s in self.std) or not np.isfinite(self.mean).all():
            raise GralisError(f"std must be > 0 and mean finite. Got {self.std} and {self.mean}.")

    def picture(self, path: Path) -> Array:
        """The cropped and scaled picture in a file, (height, width, channels), with values in [0, 1]."""
        small = self._cut(_open(path, "L" if len(self.mean) == 1 else "RGB"))
        return (np.asarray(small, dtype=np.float64) / 255).reshape(self.height, self.width, -1)

    def mask(self, path: Path, picture: Path) -> NDArray[np.bool_]:
        """An annotation of a picture, (height, width): true where at least half of a pixel is not black."""
        marks, size = _open(path, "RGB"), _open(picture, "L").size
        from PIL import Image  # cannot fail, because the pictures were opened

        if marks.size != size:
            raise GralisError(
                f"{path.name} is {marks.width} x {marks.height} pixels, and {picture.name} {size[0]} x {size[1]}; "
                f"an annotation must have the size of its picture."
            )
        full = Image.fromarray(np.where(np.asarray(marks).any(2), 255, 0).astype(np.uint8))
        return np.asarray(np.asarray(self._cut(full)) >= 128)

    def _cut(self, image: Any) -> Any:
        """The centred part of an image, scaled."""
        scale = min(image.width / self.width, image.height / self.height)
        width, height = min(scale * self.width, image.width), min(scale * self.height, image.height)  # despite rounding
        left, top = (image.width - width) / 2, (image.height - height) / 2
        return image.resize((self.width, self.height), 2, box=(left, top, left + width, top + height))  # bilinear

    def tensor(self, picture: Array) -> torch.Tensor:
        """The input of the network: the picture normalised, (channels, height, width)."""
        normalised = (picture - np.array(self.mean)) / np.array(self.std)
        return torch.tensor(normalised, dtype=torch.float32).permute(2, 0, 1).contiguous()

    def shown(self, x: Array) -> Array:
        """The picture behind a normalised input, (height, width, 3): the inverse of `tensor`."""
        picture = np.moveaxis(np.asarray(x, dtype=np.float64), 0, 2) * np.array(self.std) + np.array(self.mean)
        return np.broadcast_to(picture.clip(0, 1), (*picture.shape[:2], 3))

    @staticmethod
    def of(explanation: Explanation) -> Preprocessing | None:
        """The preprocessing in the provenance of an explanation of a picture; None if there is none."""
        known = explanation.provenance.get("preprocessing")
        if not isinstance(known, Mapping) or explanation.provenance.get("layer") is not None:
            return None
        return Preprocessing(known["height"], known["width"], tuple(known["mean"]), tuple(known["std"]))


def _open(path: Path, mode: str) -> Any:
    """The whole image, turned upright (EXIF), 8 bits per channel."""
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise GralisError('Pictures need Pillow: pip install "gralis[image]".') from error
    if not path.is_file():
        raise GralisError(f"There is no file {path}.")
    Image.init()
    formats = [name for name in _FORMATS if name in Image.OPEN]  # a build of Pillow may lack one
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=formats) as image:
                if image.width * image.height > MOST_PIXELS:
                    raise GralisError(
                        f"{path} has {image.width} x {image.height} pixels, more than the {MOST_PIXELS // 10**6} "
                        f"million that are read; scale it down first."
                    )
                if image.mode not in _MODES:
                    raise GralisError(f"{path} has pixels of mode {image.mode}; convert it to 8 bits per channel.")
                return ImageOps.exif_transpose(image).convert(mode)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise GralisError(f"{path} has too many pixels ({error}); scale it down first.") from error
    except GralisError:
        raise
    except Exception as error:  # a broken file can make a decoder raise anything
        what = "not a picture that can be read" if "cannot identify" in str(error) else f"broken ({error})"
        raise GralisError(f"{path} is {what}; JPEG, PNG, WebP, GIF, BMP, TIFF and PPM are read.") from error
