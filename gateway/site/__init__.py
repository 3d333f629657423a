"""Files over HTTP: the widget, a page with it for trying it out, and the sample site."""
