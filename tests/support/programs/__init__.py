"""Programs of other compilers with what they must compute: run on the simulator by tests, listed in docs/design/programs.md.

A program is a generator function: it yields launches, is sent what each gave (None where something else than the
simulator ran it), and asserts what its arrays hold. The same functions judge a GPU.
"""
