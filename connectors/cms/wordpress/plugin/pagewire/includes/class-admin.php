<?php
/**
 * Settings > Pagewire.
 *
 * @package Pagewire
 */

namespace Pagewire;

defined( 'ABSPATH' ) || exit;

/** The form, two buttons, and how it is going. Everything here needs manage_options and a nonce. */
final class Admin {

	const PAGE  = 'pagewire';
	const TEST  = 'pagewire_test';
	const ALL   = 'pagewire_send_everything';
	const LOOK  = 'pagewire_progress';
	const RIGHT = 'manage_options';
	const SHOWN = 50; // Refused pages that are named.

	/**
	 * What is shown.
	 *
	 * @var Settings
	 */
	private $settings;

	/**
	 * What waits.
	 *
	 * @var Queue
	 */
	private $queue;

	/**
	 * For the test: the way to our own pages.
	 *
	 * @var Visit
	 */
	private $visit;

	/**
	 * For the test: the way to Pagewire.
	 *
	 * @var Endpoint
	 */
	private $endpoint;

	/**
	 * For sending everything.
	 *
	 * @var Sender
	 */
	private $sender;

	/**
	 * Takes what it needs.
	 *
	 * @param Settings $settings What is shown.
	 * @param Queue    $queue    What waits.
	 * @param Visit    $visit    For the test: the way to our own pages.
	 * @param Endpoint $endpoint For the test: the way to Pagewire.
	 * @param Sender   $sender   For sending everything.
	 */
	public function __construct( Settings $settings, Queue $queue, Visit $visit, Endpoint $endpoint, Sender $sender ) {
		$this->settings = $settings;
		$this->queue    = $queue;
		$this->visit    = $visit;
		$this->endpoint = $endpoint;
		$this->sender   = $sender;
	}

	/** Listens. */
	public function register() {
		add_action( 'admin_menu', array( $this, 'menu' ) );
		add_action( 'admin_init', array( $this, 'options' ) );
		add_action( 'admin_post_' . self::TEST, array( $this, 'test' ) );
		add_action( 'admin_post_' . self::ALL, array( $this, 'send_everything' ) );
		add_action( 'wp_ajax_' . self::LOOK, array( $this, 'progress' ) );
		add_action( 'admin_enqueue_scripts', array( $this, 'script' ) );
		add_filter( 'plugin_action_links_' . plugin_basename( dirname( __DIR__ ) . '/pagewire.php' ), array( $this, 'link' ) );
	}

	/** The entry under Settings. */
	public function menu() {
		add_options_page( __( 'Pagewire', 'pagewire' ), __( 'Pagewire', 'pagewire' ), self::RIGHT, self::PAGE, array( $this, 'page' ) );
	}

	/**
	 * A way from the list of plugins.
	 *
	 * @param string[] $links Others.
	 * @return string[]
	 */
	public function link( $links ) {
		array_unshift( $links, sprintf( '<a href="%s">%s</a>', esc_url( self::url() ), esc_html__( 'Settings', 'pagewire' ) ) );
		return $links;
	}

	/** The form posts to options.php, which checks nonce and right. */
	public function options() {
		register_setting(
			self::PAGE,
			Settings::OPTION,
			array(
				'type'              => 'array',
				'sanitize_callback' => array( $this, 'sanitize' ),
				'show_in_rest'      => false,
			)
		);
		register_setting(
			self::PAGE,
			Settings::SECRET,
			array(
				'type'              => 'string',
				'sanitize_callback' => array( $this, 'sanitize_secret' ),
				'show_in_rest'      => false,
			)
		);
	}

	/**
	 * Only what is right is kept; what is not leaves the old value and says so.
	 *
	 * @param mixed $given From the form.
	 * @return array
	 */
	public function sanitize( $given ) {
		$given = is_array( $given ) ? $given : array();
		$old   = $this->settings->all();
		$text  = static function ( $key ) use ( $given ) {
			return isset( $given[ $key ] ) && is_string( $given[ $key ] ) ? trim( sanitize_text_field( $given[ $key ] ) ) : '';
		};
		$types = static function ( $key ) use ( $given ) {
			$names = isset( $given[ $key ] ) && is_array( $given[ $key ] ) ? array_filter( $given[ $key ], 'is_string' ) : array();
			return array_values( array_intersect( array_map( 'sanitize_key', $names ), Settings::offered() ) );
		};
		$new   = array(
			'endpoint'  => untrailingslashit( esc_url_raw( $text( 'endpoint' ), array( 'http', 'https' ) ) ),
			'site'      => $text( 'site' ),
			'connector' => $text( 'connector' ),
			'types'     => $types( 'types' ),
			'shown'     => $types( 'shown' ),
			'lang'      => $text( 'lang' ),
			'markdown'  => ! empty( $given['markdown'] ),
			'widget'    => ! empty( $given['widget'] ),
			'visitors'  => untrailingslashit( esc_url_raw( $text( 'visitors' ), array( 'http', 'https' ) ) ),
			'private'   => $old['private'],
		);
		// What lies behind the firewall is not for everybody to ask who may change settings, such as the administrator of
		// one site of a network. Whoever may install plugins can run any code here anyway.
		if ( '' !== $new['endpoint'] && $new['endpoint'] !== $old['endpoint'] ) {
			$new['private'] = current_user_can( 'install_plugins' );
			if ( ! self::is_address( $new['endpoint'] ) ) {
				$this->wrong( __( 'The address must look like https://pagewire.example.org, without a name, a password or a question mark in it.', 'pagewire' ) );
				$new['endpoint'] = $old['endpoint'];
				$new['private']  = $old['private'];
			} elseif ( ! $new['private'] && ! Endpoint::is_external( $new['endpoint'] ) ) {
				$this->wrong( __( 'This address cannot be looked up, or is inside a private network. Only somebody who may install plugins can set such a one, or PAGEWIRE_ENDPOINT in wp-config.php.', 'pagewire' ) );
				$new['endpoint'] = $old['endpoint'];
				$new['private']  = $old['private'];
			}
		}
		if ( '' !== $new['visitors'] && ! self::is_address( $new['visitors'] ) ) {
			$this->wrong( __( 'The address for visitors must look like https://pagewire.example.org, too.', 'pagewire' ) );
			$new['visitors'] = $old['visitors'];
		}
		// Who may set it may run any script in every visitor's browser: in a network not the administrators of its sites.
		$script = self::script_address( $new );
		if ( ! in_array( $script, array( '', self::script_address( $old ) ), true ) && ! current_user_can( 'unfiltered_html' ) ) {
			$this->wrong( __( 'The chat is a script on every page: only somebody who may use unfiltered HTML can switch it on or change its address, in a network its administrators.', 'pagewire' ) );
			foreach ( array( 'widget', 'visitors', 'endpoint', 'private' ) as $key ) {
				$new[ $key ] = $old[ $key ];
			}
		}
		if ( '' !== $new['site'] && ! preg_match( '/^[a-z0-9][a-z0-9-]{0,62}$/', $new['site'] ) ) {
			$this->wrong( __( 'Site is the name under sites: in pagewire.yaml: lower-case letters, digits and hyphens.', 'pagewire' ) );
			$new['site'] = $old['site'];
		}
		if ( ! preg_match( '/^[a-z0-9][a-z0-9_-]{0,62}$/', $new['connector'] ) ) {
			$this->wrong( __( 'Connector is the name under connectors: in pagewire.yaml: lower-case letters, digits, hyphens and underscores.', 'pagewire' ) );
			$new['connector'] = $old['connector'];
		}
		if ( '' !== $new['lang'] && ! preg_match( '/^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$/', $new['lang'] ) ) {
			$this->wrong( __( 'Language is a tag such as en, de or pt-BR.', 'pagewire' ) );
			$new['lang'] = $old['lang'];
		}
		$this->forgive();
		return $new;
	}

	/**
	 * An empty field keeps the secret.
	 *
	 * @param mixed $given From the form.
	 * @return string
	 */
	public function sanitize_secret( $given ) {
		$old = (string) get_option( Settings::SECRET, '' );
		$new = is_string( $given ) ? trim( $given ) : '';
		if ( '' === $new ) {
			return $old;
		}
		if ( null === Settings::key( $new ) ) {
			$this->wrong( __( 'This is not a secret: it begins with whsec_ and at least 32 more characters follow.', 'pagewire' ) );
			return $old;
		}
		return $new;
	}

	/** The button Test connection. */
	public function test() {
		$this->allowed( self::TEST );
		if ( ! $this->settings->ready() ) {
			$this->back( 'error', __( 'Fill in address, site, connector and secret, and save them first.', 'pagewire' ) );
		}
		$began   = microtime( true );
		$answer  = $this->endpoint->post( '' );
		$took    = round( ( microtime( true ) - $began ) * 1000 );
		$problem = $this->endpoint->problem( $answer );
		$trouble = '' === $problem ? $this->visit->trouble() : $problem;
		if ( '' !== $trouble ) {
			$this->back( 'error', $trouble );
		}
		/* translators: %d: milliseconds */
		$said = sprintf( __( 'The connection works: Pagewire took a signed test delivery in %d ms.', 'pagewire' ), $took );
		if ( null !== $answer['skew'] && abs( $answer['skew'] ) > Endpoint::SKEW ) {
			/* translators: %d: seconds */
			$said .= ' ' . sprintf( __( 'But the clocks of the two servers differ by %d seconds; from 300 on deliveries are refused.', 'pagewire' ), abs( $answer['skew'] ) );
		}
		$this->forgive();
		$this->sender->kick(); // What waited for the connection need not wait for the clock.
		$this->back( 'success', $said );
	}

	/** The button Send everything. */
	public function send_everything() {
		$this->allowed( self::ALL );
		if ( ! $this->settings->ready() ) {
			$this->back( 'error', __( 'Fill in address, site, connector and secret, and save them first.', 'pagewire' ) );
		}
		$this->sender->send_everything();
		$this->forgive();
		/* translators: %s: number of pages */
		$this->back( 'success', sprintf( __( 'All %s public pages are being sent. Saves go first; you may leave this page.', 'pagewire' ), number_format_i18n( $this->sender->fill()['total'] ) ) );
	}

	/** How it is going, for the script. */
	public function progress() {
		check_ajax_referer( self::LOOK );
		if ( ! current_user_can( self::RIGHT ) ) {
			wp_send_json_error( null, 403 );
		}
		wp_send_json_success( $this->lines() );
	}

	/**
	 * The script that keeps the numbers fresh.
	 *
	 * @param string $hook Which screen.
	 */
	public function script( $hook ) {
		if ( 'settings_page_' . self::PAGE !== $hook ) {
			return;
		}
		wp_enqueue_script( 'pagewire-progress', plugins_url( 'assets/progress.js', __DIR__ ), array(), VERSION, true );
		$told = array(
			'url'    => admin_url( 'admin-ajax.php' ),
			'action' => self::LOOK,
			'nonce'  => wp_create_nonce( self::LOOK ),
		);
		wp_add_inline_script( 'pagewire-progress', 'const pagewireProgress = ' . wp_json_encode( $told, JSON_HEX_TAG | JSON_HEX_AMP ) . ';', 'before' );
	}

	/**
	 * How it is going, in sentences.
	 *
	 * @return array `delivered`, `queue`, `problem`: text; `busy`: whether more is to be expected soon; `done`, `total`.
	 */
	private function lines() {
		$state  = Settings::state();
		$length = $this->queue->length();
		$fill   = $this->sender->fill();
		$done   = $fill ? min( $fill['total'], max( 0, $fill['done'] - $length ) ) : 0;
		$queue  = 0 === $length ? __( 'Nothing is waiting.', 'pagewire' )
			/* translators: %s: number of pages */
			: sprintf( _n( '%s page is waiting.', '%s pages are waiting.', $length, 'pagewire' ), number_format_i18n( $length ) );
		if ( $fill ) {
			/* translators: 1: pages that are sent, 2: all pages */
			$queue .= ' ' . sprintf( __( 'Sending everything: %1$s of %2$s.', 'pagewire' ), number_format_i18n( $done ), number_format_i18n( $fill['total'] ) );
		}
		$problem = $state['problem'];
		if ( '' !== $problem && $state['until'] > time() ) {
			/* translators: %s: a span of time */
			$problem .= ' ' . sprintf( __( 'Next try in %s.', 'pagewire' ), human_time_diff( time(), $state['until'] ) );
		}
		return array(
			'delivered' => 0 === $state['delivered'] ? __( 'Never.', 'pagewire' )
				/* translators: 1: a span of time, 2: date and time, 3: number of pages */
				: sprintf( _n( '%1$s ago (%2$s), %3$s page.', '%1$s ago (%2$s), %3$s pages.', $state['pages'], 'pagewire' ), human_time_diff( $state['delivered'] ), wp_date( get_option( 'date_format' ) . ' H:i:s', $state['delivered'] ), number_format_i18n( $state['pages'] ) ),
			'queue'     => $queue,
			'problem'   => $problem,
			'busy'      => $length > 0 || (bool) $fill,
			'done'      => $done,
			'total'     => $fill ? $fill['total'] : 0,
		);
	}

	/** The page itself. */
	public function page() {
		if ( ! current_user_can( self::RIGHT ) ) {
			return;
		}
		$all    = $this->settings->all();
		$lines  = $this->lines();
		$said   = get_transient( self::said() );
		$secret = $this->settings->secret();
		delete_transient( self::said() );
		?>
		<div class="wrap">
			<h1><?php esc_html_e( 'Pagewire', 'pagewire' ); ?></h1>
			<?php if ( is_array( $said ) ) : ?>
				<div class="notice notice-<?php echo esc_attr( $said[0] ); ?> is-dismissible"><p><?php echo esc_html( $said[1] ); ?></p></div>
			<?php endif; ?>

			<h2><?php esc_html_e( 'How it is going', 'pagewire' ); ?></h2>
			<table class="form-table" role="presentation">
				<tr><th scope="row"><?php esc_html_e( 'Last delivered', 'pagewire' ); ?></th><td id="pagewire-delivered"><?php echo esc_html( $lines['delivered'] ); ?></td></tr>
				<tr><th scope="row"><?php esc_html_e( 'Queue', 'pagewire' ); ?></th><td>
					<span id="pagewire-queue" role="status"><?php echo esc_html( $lines['queue'] ); ?></span>
					<p><progress id="pagewire-progress" max="<?php echo esc_attr( max( 1, $lines['total'] ) ); ?>" value="<?php echo esc_attr( $lines['done'] ); ?>"<?php echo $lines['total'] ? '' : ' hidden'; ?>></progress></p>
				</td></tr>
				<tr id="pagewire-trouble"<?php echo '' === $lines['problem'] ? ' hidden' : ''; ?>><th scope="row"><?php esc_html_e( 'Problem', 'pagewire' ); ?></th><td><strong id="pagewire-problem"><?php echo esc_html( $lines['problem'] ); ?></strong></td></tr>
			</table>
			<?php $this->refusals(); ?>
			<p>
				<?php $this->button( self::TEST, __( 'Test connection', 'pagewire' ) ); ?>
				<?php $this->button( self::ALL, __( 'Send everything', 'pagewire' ) ); ?>
			</p>
			<p class="description"><?php esc_html_e( '"Send everything" is needed once, after the first connection. After that every save sends itself.', 'pagewire' ); ?></p>

			<form method="post" action="options.php">
				<?php settings_fields( self::PAGE ); ?>
				<h2><?php esc_html_e( 'Connection', 'pagewire' ); ?></h2>
				<table class="form-table" role="presentation">
					<?php
					$this->field( 'endpoint', __( 'Address of Pagewire', 'pagewire' ), $all['endpoint'], 'url', __( 'For example https://pagewire.example.org', 'pagewire' ), defined( 'PAGEWIRE_ENDPOINT' ) );
					$this->field( 'site', __( 'Site', 'pagewire' ), $all['site'], 'text', __( 'Its name under sites: in pagewire.yaml.', 'pagewire' ) );
					$this->field( 'connector', __( 'Connector', 'pagewire' ), $all['connector'], 'text', __( 'Its name under connectors: of that site.', 'pagewire' ) );
					?>
					<tr>
						<th scope="row"><label for="pagewire-secret"><?php esc_html_e( 'Secret', 'pagewire' ); ?></label></th>
						<td>
							<input type="password" id="pagewire-secret" name="<?php echo esc_attr( Settings::SECRET ); ?>" value="" class="regular-text" autocomplete="new-password" aria-describedby="pagewire-secret-said" <?php disabled( defined( 'PAGEWIRE_SECRET' ) ); ?>>
							<p class="description" id="pagewire-secret-said">
								<?php
								if ( defined( 'PAGEWIRE_SECRET' ) ) {
									esc_html_e( 'Set by PAGEWIRE_SECRET in wp-config.php.', 'pagewire' );
								} elseif ( '' === $secret ) {
									esc_html_e( 'Begins with whsec_; the same as secret: of the connector in pagewire.yaml.', 'pagewire' );
								} else {
									/* translators: %s: the last four characters */
									echo esc_html( sprintf( __( 'Kept; ends in %s. Leave this empty to keep it.', 'pagewire' ), substr( $secret, -4 ) ) );
								}
								?>
							</p>
						</td>
					</tr>
				</table>
				<h2><?php esc_html_e( 'What is sent', 'pagewire' ); ?></h2>
				<table class="form-table" role="presentation">
					<?php
					$this->kinds( 'types', __( 'Kinds of pages', 'pagewire' ), $all['types'], __( 'Only what every visitor may read leaves this site: each page is asked for as somebody who is not logged in. Drafts, private pages, pages with a password and pages for members never leave.', 'pagewire' ) );
					$this->kinds( 'shown', __( 'Read as the theme shows them', 'pagewire' ), $all['shown'], __( 'For kinds whose theme prints more than the content, such as custom fields, prices and stock: all of the page between its header and its footer is sent, without comments. Press "Send everything" after a change.', 'pagewire' ) );
					?>
					<?php $this->field( 'lang', __( 'Language', 'pagewire' ), $all['lang'], 'text', __( 'Of pages that Polylang or WPML say nothing about. Empty: the language of this site.', 'pagewire' ), false, 'small-text' ); ?>
				</table>
				<h2><?php esc_html_e( 'Chat', 'pagewire' ); ?></h2>
				<table class="form-table" role="presentation">
					<tr>
						<th scope="row"><?php esc_html_e( 'On this site', 'pagewire' ); ?></th>
						<td>
							<label><input type="checkbox" name="<?php echo esc_attr( Settings::OPTION ); ?>[widget]" value="1" <?php checked( $all['widget'] ); ?>> <?php esc_html_e( 'Show the chat on every page', 'pagewire' ); ?></label>
							<p class="description">
								<?php
								/* translators: %s: address of this site */
								echo esc_html( sprintf( __( 'This site\'s address, %s, must stand under origins: in pagewire.yaml.', 'pagewire' ), self::origin() ) );
								?>
							</p>
						</td>
					</tr>
					<?php $this->field( 'visitors', __( 'Address for visitors', 'pagewire' ), $all['visitors'], 'url', __( 'Where browsers find Pagewire, if that is not the address above.', 'pagewire' ) ); ?>
				</table>
				<h2><?php esc_html_e( 'Assistants', 'pagewire' ); ?></h2>
				<table class="form-table" role="presentation">
					<tr>
						<th scope="row"><?php esc_html_e( 'On this site', 'pagewire' ); ?></th>
						<td>
							<label><input type="checkbox" name="<?php echo esc_attr( Settings::OPTION ); ?>[markdown]" value="1" <?php checked( $all['markdown'] ); ?>> <?php esc_html_e( 'Give pages as Markdown, and llms.txt', 'pagewire' ); ?></label>
							<p class="description">
								<?php
								/* translators: %s: address of llms.txt */
								echo esc_html( sprintf( __( 'At the address of each page with ?format=md or .md behind it, and at %s. The site needs agents: [pages] in pagewire.yaml.', 'pagewire' ), home_url( '/llms.txt' ) ) );
								?>
							</p>
						</td>
					</tr>
				</table>
				<?php submit_button(); ?>
			</form>
		</div>
		<?php
	}

	/** The pages that Pagewire did not take, and those that visitors do not get. */
	private function refusals() {
		$refused = $this->queue->refused( self::SHOWN );
		if ( ! $refused ) {
			return;
		}
		?>
		<h3><?php esc_html_e( 'Refused', 'pagewire' ); ?></h3>
		<p><?php esc_html_e( 'These pages are not sent as they are now: visitors who are not logged in do not get them, they cannot be shown, or Pagewire does not take them. Correct and save them, and they are sent again; once a day that is tried anyway.', 'pagewire' ); ?></p>
		<table class="widefat striped">
			<thead><tr><th scope="col"><?php esc_html_e( 'Page', 'pagewire' ); ?></th><th scope="col"><?php esc_html_e( 'Since', 'pagewire' ); ?></th><th scope="col"><?php esc_html_e( 'Reason', 'pagewire' ); ?></th></tr></thead>
			<tbody>
			<?php foreach ( $refused as $row ) : ?>
				<?php
				$title = get_the_title( (int) $row->post_id );
				$edit  = get_edit_post_link( (int) $row->post_id );
				?>
				<tr>
					<td><a href="<?php echo esc_url( (string) $edit ); ?>"><?php echo esc_html( '' === $title ? $row->page_id : Pages::plain( $title ) ); ?></a></td>
					<td><?php echo esc_html( wp_date( get_option( 'date_format' ) . ' H:i:s', (int) ( $row->revision / 1000 ) ) ); ?></td>
					<td><?php echo esc_html( $row->reason ); ?></td>
				</tr>
			<?php endforeach; ?>
			</tbody>
		</table>
		<?php
	}

	/**
	 * A row with one field.
	 *
	 * @param string $key   In the option.
	 * @param string $label What it is.
	 * @param string $value What it holds.
	 * @param string $type  Of the input.
	 * @param string $about Explained.
	 * @param bool   $fixed Whether wp-config.php says it.
	 * @param string $size  Class of the input.
	 */
	private function field( $key, $label, $value, $type, $about, $fixed = false, $size = 'regular-text' ) {
		$id = 'pagewire-field-' . $key;
		?>
		<tr>
			<th scope="row"><label for="<?php echo esc_attr( $id ); ?>"><?php echo esc_html( $label ); ?></label></th>
			<td>
				<input type="<?php echo esc_attr( $type ); ?>" id="<?php echo esc_attr( $id ); ?>" name="<?php echo esc_attr( Settings::OPTION . "[$key]" ); ?>" value="<?php echo esc_attr( $value ); ?>" class="<?php echo esc_attr( $size ); ?>" aria-describedby="<?php echo esc_attr( $id ); ?>-said" <?php echo $fixed ? 'readonly' : ''; ?>>
				<p class="description" id="<?php echo esc_attr( $id ); ?>-said"><?php echo esc_html( $fixed ? __( 'Set in wp-config.php.', 'pagewire' ) : $about ); ?></p>
			</td>
		</tr>
		<?php
	}

	/**
	 * A row with a box for each kind of pages.
	 *
	 * @param string   $key    In the option.
	 * @param string   $label  What the boxes are for.
	 * @param string[] $chosen Kinds that are ticked.
	 * @param string   $about  Explained.
	 */
	private function kinds( $key, $label, array $chosen, $about ) {
		?>
		<tr>
			<th scope="row"><?php echo esc_html( $label ); ?></th>
			<td><fieldset><legend class="screen-reader-text"><?php echo esc_html( $label ); ?></legend>
				<?php foreach ( Settings::offered() as $type ) : ?>
					<label><input type="checkbox" name="<?php echo esc_attr( Settings::OPTION . "[$key][]" ); ?>" value="<?php echo esc_attr( $type ); ?>" <?php checked( in_array( $type, $chosen, true ) ); ?>> <?php echo esc_html( get_post_type_object( $type )->labels->name ); ?> <code><?php echo esc_html( $type ); ?></code></label><br>
				<?php endforeach; ?>
				<p class="description"><?php echo esc_html( $about ); ?></p>
			</fieldset></td>
		</tr>
		<?php
	}

	/**
	 * A button that does something.
	 *
	 * @param string $action What.
	 * @param string $label  As it reads.
	 */
	private function button( $action, $label ) {
		?>
		<form method="post" action="<?php echo esc_url( admin_url( 'admin-post.php' ) ); ?>" style="display: inline-block">
			<input type="hidden" name="action" value="<?php echo esc_attr( $action ); ?>">
			<?php wp_nonce_field( $action ); ?>
			<?php submit_button( $label, 'secondary', $action, false ); ?>
		</form>
		<?php
	}

	/**
	 * Ends the request when it was not meant, or not allowed.
	 *
	 * @param string $action Which.
	 */
	private function allowed( $action ) {
		check_admin_referer( $action );
		if ( ! current_user_can( self::RIGHT ) ) {
			wp_die( esc_html__( 'Sorry, you are not allowed to do this.', 'pagewire' ), '', array( 'response' => 403 ) );
		}
	}

	/** Whatever went wrong may be right now: the next try need not wait. */
	private function forgive() {
		Settings::note(
			array(
				'tries'   => 0,
				'until'   => 0,
				'problem' => '',
			)
		);
	}

	/**
	 * Back to the page, which says how it went.
	 *
	 * @param string $kind success or error.
	 * @param string $said What to say.
	 */
	private function back( $kind, $said ) {
		set_transient( self::said(), array( $kind, $said ), MINUTE_IN_SECONDS );
		wp_safe_redirect( self::url() );
		exit;
	}

	/**
	 * A message beside the form.
	 *
	 * @param string $said What is wrong.
	 */
	private function wrong( $said ) {
		add_settings_error( self::PAGE, 'pagewire', $said );
	}

	/**
	 * Where the chat's script comes from; empty when it is off.
	 *
	 * @param array $all Settings.
	 * @return string
	 */
	private static function script_address( array $all ) {
		return $all['widget'] ? untrailingslashit( '' === $all['visitors'] ? $all['endpoint'] : $all['visitors'] ) : '';
	}

	/**
	 * Whether an address can be one of a server.
	 *
	 * @param string $url An address.
	 * @return bool
	 */
	private static function is_address( $url ) {
		$parts = wp_parse_url( $url );
		return is_array( $parts ) && ! empty( $parts['host'] ) && ! array_intersect_key( $parts, array_flip( array( 'user', 'pass', 'query', 'fragment' ) ) );
	}

	/**
	 * What is kept for this user to be told.
	 *
	 * @return string
	 */
	private static function said() {
		return 'pagewire_said_' . get_current_user_id();
	}

	/**
	 * Where this page is.
	 *
	 * @return string
	 */
	private static function url() {
		return admin_url( 'options-general.php?page=' . self::PAGE );
	}

	/**
	 * Scheme, host and port of this site, as a browser names it.
	 *
	 * @return string
	 */
	private static function origin() {
		$parts = wp_parse_url( home_url() );
		return $parts['scheme'] . '://' . $parts['host'] . ( isset( $parts['port'] ) ? ':' . $parts['port'] : '' );
	}
}
