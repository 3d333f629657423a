"""Do the unit tests notice a defect? Small defects are made one by one, and the tests that reach each are run.

    sources ─▶ mutmut's operators ─▶ seeded sample ─▶ the tests that ran the line ─▶ killed, or survived
                                                       └ noted once, by coverage

mutmut makes the defects. Its own runner is not used: it has no sample, tests copies of the functions behind
trampolines, and wants the tree copied. Here each mutant is a process of its own in which the import system gets the
changed source; no file of the tree is touched.
"""
