"""Settings for all tests."""

import signal

import torch
from hypothesis import settings

# the problems are tiny: a second thread costs more than it gives (tests about threads set their own number)
torch.set_num_threads(1)

# `make test` says the same twice; `make fuzz` looks further, with inputs nobody has seen
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("fuzz", derandomize=False, deadline=None)
settings.load_profile("repeatable")

# a shell starts what runs in the background with Ctrl-C ignored; tests of interrupts mean the usual process
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
