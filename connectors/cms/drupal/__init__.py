"""Drupal: the module in `module/` pushes changes, and answers what `connectors/cms/module` asks."""
