"""AST in, recoverable code out: vaccination, crash barriers, unfinished procedures. No IPython, no torch."""
