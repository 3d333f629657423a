"""The chat for visitors: TypeScript in `src/`, bundled into `gateway/site/static/widget.js`."""
