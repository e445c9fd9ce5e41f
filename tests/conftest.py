"""Settings for all tests."""

import torch
from hypothesis import settings

# the problems are tiny: a second thread costs more than it gives (tests about threads set their own number)
torch.set_num_threads(1)

# `make test` says the same twice; `make fuzz` looks further, with inputs nobody has seen
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("fuzz", derandomize=False, deadline=None)
settings.load_profile("repeatable")
