/* Keeps the numbers on Settings > Pagewire fresh. */
( function () {
	'use strict';

	const told = pagewireProgress;
	const at = ( id ) => document.getElementById( 'pagewire-' + id );

	async function look() {
		let wait = 10000; // milliseconds
		try {
			const answer = await fetch( told.url, {
				method: 'POST',
				credentials: 'same-origin',
				body: new URLSearchParams( { action: told.action, _ajax_nonce: told.nonce } ),
			} );
			const said = await answer.json();
			if ( ! said.success ) {
				return; // Logged out.
			}
			const lines = said.data;
			at( 'delivered' ).textContent = lines.delivered;
			if ( at( 'queue' ).textContent !== lines.queue ) {
				at( 'queue' ).textContent = lines.queue; // It is read out: only when it is new.
			}
			at( 'problem' ).textContent = lines.problem;
			at( 'trouble' ).hidden = lines.problem === '';
			at( 'progress' ).max = Math.max( 1, lines.total );
			at( 'progress' ).value = lines.done;
			at( 'progress' ).hidden = lines.total === 0;
			wait = lines.busy ? 2000 : wait;
		} catch ( error ) {
			// The server is away for a moment; look again.
		}
		window.setTimeout( look, wait );
	}

	window.setTimeout( look, 2000 );
}() );
