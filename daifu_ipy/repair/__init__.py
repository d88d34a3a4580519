"""Views of a crash and rules that answer one, for any front end."""
