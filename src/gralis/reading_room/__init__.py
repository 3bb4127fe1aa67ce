"""The gallery: the results of `explain_many` as a static site for reading, which opens from disk without a server.

cases                the rows of the list: prediction, label, largest features, width, residual
judgements           whether a prediction is right, and names of classes
groups               statistics of the whole data set and of its classes, with intervals
thumbnails           small pictures of inputs
site                 the files of the site; the page is made of the files .html, .css and .js beside it
gallery_of_results   `gralis.gallery`: from a folder of results to a site
"""

from gralis.reading_room.gallery_of_results import gallery

__all__ = ["gallery"]
