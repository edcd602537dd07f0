# SPDX-License-Identifier: Apache-2.0
"""Trainyard: what clusters of GPUs do, predicted from descriptions of their parts.

    import trainyard
    cluster = trainyard.Cluster("dgx-h100", nodes=8, set={"server.nics": 4})
    cluster.collective("all_reduce", minbytes="1M", maxbytes="1G").frame()
    cluster.step(model="llama-3-8b")["step_time_s"]

Each command of the program is a function here, with its options as keywords ("_" for "-") and the
figures of its JSON as the result. docs/guide/python.md has the rules.
"""

from trainyard._algorithms import Send, algorithm, algorithm_text
from trainyard._calls import Cluster, Result, Warning, call, commands, functions
from trainyard._core import Cancelled, Error, FlowSignal, __version__

_made = {function.__name__: function for function in functions().values()}
globals().update(_made)

__all__ = ["Cancelled", "Cluster", "Error", "FlowSignal", "Result", "Send", "__version__",
           "algorithm", "algorithm_text", "call", "commands", *_made]
