"""Settings for all tests."""

import torch

# the problems are tiny: a second thread costs more than it gives (tests about threads set their own number)
torch.set_num_threads(1)
