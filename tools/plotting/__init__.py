# SPDX-License-Identifier: Apache-2.0
"""What tools/plot draws: data.py reads, style.py has axes and colours, the others one kind each."""
