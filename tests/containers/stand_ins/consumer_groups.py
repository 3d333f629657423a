#!/usr/bin/env python
"""Kafka's own tool for consumer groups, which docs/howto/backup.md calls by its path in the image apache/kafka."""

from __future__ import annotations

import os
import sys

from infra.engine.jars import KAFKA_JARS
from infra.engine.java import find

TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
os.execv(find().home / "bin/java", ["java", "-cp", f"/engine/{KAFKA_JARS}/*", TOOL, *sys.argv[1:]])
