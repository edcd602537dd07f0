# SPDX-License-Identifier: Apache-2.0
"""What `ss -tin` says of a connection is read as it says it."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

from boxing.measure import sample_of  # noqa: E402

TEXT = ("\t cubic wscale:7,7 rto:236 rtt:35.5/1.25 ato:40 mss:1448 pmtu:1500 rcvmss:536 advmss:1448 "
        "cwnd:83 ssthresh:58 bytes_sent:1 retrans:0/7 minrtt:0.3")


def main():
    assert sample_of(TEXT) == (83, 35.5, 58, 7)
    assert sample_of(TEXT.replace(" ssthresh:58", "").replace(" retrans:0/7", "")) == (83, 35.5, "", 0)
    assert sample_of("\t cubic wscale:7,7 minrtt:0.3 cwnd:10") is None


if __name__ == "__main__":
    main()
