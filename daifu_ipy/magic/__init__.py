"""The IPython face: ``%%daifu`` and ``%daifu``."""
