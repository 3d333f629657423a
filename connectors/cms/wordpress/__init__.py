"""WordPress: its pages over the REST API, and the plugin that pushes every save."""
