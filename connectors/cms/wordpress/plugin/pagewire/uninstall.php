<?php
/**
 * Deletes what the plugin kept, in every site of a network.
 *
 * @package Pagewire
 */

defined( 'WP_UNINSTALL_PLUGIN' ) || exit;

/** In one site. */
function pagewire_uninstall_site() {
	global $wpdb;
	$wpdb->query( "DROP TABLE IF EXISTS {$wpdb->prefix}pagewire_pages" ); // phpcs:ignore WordPress.DB -- own table.
	foreach ( array( 'pagewire', 'pagewire_secret', 'pagewire_state', 'pagewire_fill', 'pagewire_asked', 'pagewire_table' ) as $pagewire_option ) {
		delete_option( $pagewire_option );
	}
	wp_clear_scheduled_hook( 'pagewire_drain' );
}

if ( is_multisite() ) {
	foreach ( get_sites(
		array(
			'fields' => 'ids',
			'number' => 0,
		)
	) as $pagewire_site ) {
		switch_to_blog( $pagewire_site );
		pagewire_uninstall_site();
		restore_current_blog();
	}
} else {
	pagewire_uninstall_site();
}
