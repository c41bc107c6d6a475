"""Reads untrusted pickles and torch files without running any code of theirs."""
