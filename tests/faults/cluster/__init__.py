"""Several brokers and nodes under the storm's traffic, damaged one after the other, and everything read back.

    traffic ─HTTP─▶ gateways ─▶ 3 Kafka brokers ─▶ workers ─▶ proxy ─▶ 2 Elasticsearch nodes

What one server cannot show: leaders that change, copies that lag or are missing, too few in sync, partitions added.
Traffic, read-back and checker are the storm's. `python -m tests.faults.cluster --minutes 30 --seed 7` is the long form;
the short one is tests/faults/test_cluster.py.
"""
