"""The ring `helm`: the chart, linted and rendered by Helm itself."""
