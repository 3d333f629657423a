"""What all pipelines share: what a stage, a record, an error, a lane and the bus are."""
