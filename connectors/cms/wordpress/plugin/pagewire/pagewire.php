<?php
/**
 * Plugin Name:       Pagewire
 * Description:       Keeps Pagewire in step with this site: every save of a public page is handed over, and the chat can stand on every page.
 * Version:           0.3.0
 * Requires at least: 5.9
 * Requires PHP:      7.4
 * Author:            Pagewire
 * License:           GPL-2.0-or-later
 * License URI:       https://www.gnu.org/licenses/gpl-2.0.html
 * Text Domain:       pagewire
 * Domain Path:       /languages
 *
 *     save ─▶ Watcher ─▶ Queue (a table) ─▶ kick ─▶ Sender ─▶ Pagewire
 *                                            cron ───┘   └─ Visit: the page as a visitor gets it at that moment
 *
 * A save writes one row and is done. The row says that a page changed, not how: what is sent is read from the
 * page's own address when it is sent, so a page that is not public any more can never leave, however old its row is.
 *
 * @package Pagewire
 */

namespace Pagewire;

defined( 'ABSPATH' ) || exit;

const VERSION = '0.3.0';

require_once __DIR__ . '/includes/class-settings.php';
require_once __DIR__ . '/includes/class-pages.php';
require_once __DIR__ . '/includes/class-queue.php';
require_once __DIR__ . '/includes/class-watcher.php';
require_once __DIR__ . '/includes/class-endpoint.php';
require_once __DIR__ . '/includes/class-pass.php';
require_once __DIR__ . '/includes/class-visit.php';
require_once __DIR__ . '/includes/class-sender.php';
require_once __DIR__ . '/includes/class-routes.php';
require_once __DIR__ . '/includes/class-widget.php';
require_once __DIR__ . '/includes/class-markdown.php';

/** Connects everything to WordPress; nothing else runs when the file is loaded. */
function start() {
	$settings = new Settings();
	$queue    = new Queue();
	$pages    = new Pages( $settings );
	$endpoint = new Endpoint( $settings );
	$visit    = new Visit( $pages );
	$sender   = new Sender( $settings, $queue, $pages, $visit, $endpoint );
	$watcher  = new Watcher( $settings, $queue, $pages, $visit, $sender );

	add_action( 'init', array( $queue, 'ensure_table' ), 1 );
	add_action( 'init', __NAMESPACE__ . '\translate' );
	$watcher->register();
	$sender->register();
	$visit->register();
	( new Routes( $settings, $pages, $queue, $sender ) )->register();
	( new Widget( $settings, $pages ) )->register();
	( new Markdown( $settings, $pages, $endpoint ) )->register();
	if ( is_admin() ) {
		require_once __DIR__ . '/includes/class-admin.php';
		( new Admin( $settings, $queue, $visit, $endpoint, $sender ) )->register();
	}
}

/** Loads the plugin's own translations. */
function translate() {
	load_plugin_textdomain( 'pagewire', false, dirname( plugin_basename( __FILE__ ) ) . '/languages' );
}

/** Makes the table at once, so that the first save after the activation finds it. */
function activate() {
	( new Queue() )->ensure_table();
	add_option( Settings::SECRET, '', '', 'no' ); // Not loaded with every page.
}

/** Stops the clock; table and settings stay until the plugin is deleted. */
function deactivate() {
	wp_clear_scheduled_hook( Sender::CRON );
}

register_activation_hook( __FILE__, __NAMESPACE__ . '\activate' );
register_deactivation_hook( __FILE__, __NAMESPACE__ . '\deactivate' );
start();
