<?php
/**
 * The outbox: which pages changed and have not been handed over yet.
 *
 * @package Pagewire
 */

namespace Pagewire;

defined( 'ABSPATH' ) || exit;

/**
 * One row for each page that Pagewire was ever told of, so ten saves of a page in the queue are one row, and its
 * revision grows however often the clock is put back. A row leaves the queue only when Pagewire confirmed the very
 * revision that it has: a save that comes in between stays queued.
 */
final class Queue {

	const VERSION = 2;
	// What `queued` says; saves go first.
	const LATER = -1; // It failed, and is asked for once more in minutes.
	const DONE  = 0;
	const SAVE  = 1;
	const BULK  = 2;

	const AGAIN = 5 * MINUTE_IN_SECONDS;

	/**
	 * Whether something was queued in this request.
	 *
	 * @var bool
	 */
	private $touched = false;

	/** Makes the table, in every site of a network when it is first used there. */
	public function ensure_table() {
		$version = (int) get_option( 'pagewire_table' );
		if ( self::VERSION === $version ) {
			return;
		}
		global $wpdb;
		require_once ABSPATH . 'wp-admin/includes/upgrade.php';
		dbDelta(
			"CREATE TABLE {$this->table()} (
			page_id varchar(64) NOT NULL,
			lang varchar(35) NOT NULL,
			post_id bigint(20) unsigned NOT NULL,
			revision bigint(20) unsigned NOT NULL,
			queued tinyint(1) NOT NULL DEFAULT 0,
			gone tinyint(1) NOT NULL DEFAULT 0,
			refusal varchar(500) NOT NULL DEFAULT '',
			barred varchar(500) NOT NULL DEFAULT '',
			PRIMARY KEY  (page_id, lang),
			KEY post_id (post_id),
			KEY queued (queued, revision)
			) {$wpdb->get_charset_collate()};"
		);
		if ( $version ) {
			$this->touch_all(); // Version 1 sent what visitors do not get.
		}
		update_option( 'pagewire_table', self::VERSION, true );
	}

	/**
	 * Puts pages into the queue.
	 *
	 * @param array[] $pages As Pages::row() makes them; new ones are taken in.
	 * @param int     $lane  SAVE or BULK.
	 */
	public function add( array $pages, $lane = self::SAVE ) {
		global $wpdb;
		foreach ( array_chunk( $pages, 500 ) as $chunk ) {
			$rows = array();
			foreach ( $chunk as $page ) {
				$rows[] = $wpdb->prepare( '(%s, %s, %d, %d, %d)', $page['page_id'], $page['lang'], $page['post_id'], $page['revision'], $lane );
			}
			// phpcs:disable WordPress.DB -- own table; every value is prepared above or a constant.
			$wpdb->query(
				"INSERT INTO {$this->table()} (page_id, lang, post_id, revision, queued) VALUES " . implode( ', ', $rows ) .
				' ON DUPLICATE KEY UPDATE revision = GREATEST(revision + 1, VALUES(revision)), gone = 0,
				queued = IF(queued = ' . self::SAVE . ', queued, VALUES(queued))'
			);
			// phpcs:enable
			$this->touched = true;
		}
	}

	/**
	 * Puts what Pagewire knows of a post into the queue again, whatever its id and language were then.
	 *
	 * @param int  $post_id A post.
	 * @param bool $gone    It is being deleted: send that without looking at it again.
	 */
	public function touch( $post_id, $gone = false ) {
		global $wpdb;
		// phpcs:disable WordPress.DB -- own table.
		$touched = $wpdb->query(
			$wpdb->prepare(
				"UPDATE {$this->table()} SET revision = GREATEST(revision + 1, %d), queued = %d, gone = %d WHERE post_id = %d",
				self::now(),
				self::SAVE,
				$gone ? 1 : 0,
				$post_id
			)
		);
		// phpcs:enable
		$this->touched = $this->touched || $touched;
	}

	/** Queues everything that Pagewire was ever told of, in the bulk lane. */
	public function touch_all() {
		global $wpdb;
		// phpcs:disable WordPress.DB -- own table.
		$wpdb->query(
			$wpdb->prepare(
				"UPDATE {$this->table()} SET revision = GREATEST(revision + 1, %d), queued = %d WHERE queued <> %d",
				self::now(),
				self::BULK,
				self::SAVE
			)
		);
		// phpcs:enable
		$this->touched = true;
	}

	/** Queues what was not sent again: what kept it may be over, and nothing tells. */
	public function retry() {
		$this->queue_again( self::DONE, "(refusal <> '' OR barred <> '')" );
	}

	/** Queues what failed minutes ago. */
	public function retry_failed() {
		$this->queue_again( self::LATER, 'revision < ' . ( self::now() - 1000 * self::AGAIN ) );
	}

	/**
	 * Queues rows again, in the bulk lane.
	 *
	 * @param int    $queued What their `queued` says.
	 * @param string $those  Condition that they meet, too.
	 */
	private function queue_again( $queued, $those ) {
		global $wpdb;
		// phpcs:disable WordPress.DB -- own table; $those is a constant of ours.
		$wpdb->query(
			$wpdb->prepare(
				"UPDATE {$this->table()} SET revision = GREATEST(revision + 1, %d), queued = %d WHERE queued = %d AND ",
				self::now(),
				self::BULK,
				$queued
			) . $those
		);
		// phpcs:enable
	}

	/**
	 * What goes next: saves first, oldest first.
	 *
	 * @param int    $lane   SAVE or BULK.
	 * @param int    $limit  Rows at most.
	 * @param string $public Condition for public posts, prepared: only pages whose post does not meet it. Empty: all.
	 * @return object[]
	 */
	public function next( $lane, $limit, $public = '' ) {
		global $wpdb;
		$those = '' === $public ? '' : "AND (gone = 1 OR NOT EXISTS (SELECT 1 FROM {$wpdb->posts} WHERE ID = post_id AND $public))";
		// phpcs:disable WordPress.DB -- own table; $those is prepared.
		return $wpdb->get_results(
			$wpdb->prepare( "SELECT * FROM {$this->table()} WHERE queued = %d $those ORDER BY revision, page_id LIMIT %d", $lane, $limit )
		);
		// phpcs:enable
	}

	/**
	 * Keeps why visitors do not get a page.
	 *
	 * @param object $row    Of the queue.
	 * @param string $reason Empty: they do.
	 */
	public function bar( $row, $reason ) {
		global $wpdb;
		if ( $row->barred !== $reason ) {
			$of = array_intersect_key( (array) $row, array_flip( array( 'page_id', 'lang', 'revision' ) ) );
			$wpdb->update( $this->table(), array( 'barred' => mb_substr( $reason, 0, 500 ) ), $of ); // phpcs:ignore WordPress.DB -- own table.
		}
	}

	/**
	 * Those of some posts that were queued before.
	 *
	 * @param int[] $post_ids Posts.
	 * @return int[]
	 */
	public function known( array $post_ids ) {
		global $wpdb;
		$those = implode( ',', array_map( 'intval', $post_ids ) );
		return $those ? array_map( 'intval', $wpdb->get_col( "SELECT post_id FROM {$this->table()} WHERE post_id IN ($those)" ) ) : array(); // phpcs:ignore WordPress.DB -- integers.
	}

	/**
	 * Posts that visitors do not get although they are published.
	 *
	 * @return array<int, mixed> By id.
	 */
	public function barred() {
		global $wpdb;
		return array_flip( array_map( 'intval', $wpdb->get_col( "SELECT post_id FROM {$this->table()} WHERE barred <> ''" ) ) ); // phpcs:ignore WordPress.DB -- own table.
	}

	/**
	 * Takes rows out, unless their page was saved again meanwhile.
	 *
	 * @param object[] $rows    As next() gave them.
	 * @param string   $refusal Why they were not sent or Pagewire does not want them; empty when it took them.
	 * @param int      $queued  LATER: they are tried again soon.
	 */
	public function settle( array $rows, $refusal = '', $queued = self::DONE ) {
		global $wpdb;
		foreach ( array_chunk( $rows, 500 ) as $chunk ) {
			$keys = array();
			foreach ( $chunk as $row ) {
				$keys[] = $wpdb->prepare( '(%s, %s, %d)', $row->page_id, $row->lang, $row->revision );
			}
			$those = '(page_id, lang, revision) IN (' . implode( ', ', $keys ) . ')';
			// phpcs:disable WordPress.DB -- own table; $those is prepared above.
			$wpdb->query(
				$wpdb->prepare( "UPDATE {$this->table()} SET queued = %d, refusal = %s WHERE ", $queued, mb_substr( $refusal, 0, 500 ) ) . $those
			);
			if ( '' === $refusal ) {
				$wpdb->query( "DELETE FROM {$this->table()} WHERE gone = 1 AND queued = 0 AND " . $those );
			}
			// phpcs:enable
		}
	}

	/**
	 * How many wait.
	 *
	 * @return int
	 */
	public function length() {
		global $wpdb;
		return (int) $wpdb->get_var( "SELECT COUNT(*) FROM {$this->table()} WHERE queued > 0" ); // phpcs:ignore WordPress.DB
	}

	/**
	 * The newest pages that are not sent as they are, with a `reason`: refused ones first, then those that are barred.
	 *
	 * @param int $limit At most.
	 * @return object[]
	 */
	public function refused( $limit ) {
		global $wpdb;
		// phpcs:disable WordPress.DB -- own table.
		return $wpdb->get_results(
			$wpdb->prepare( "SELECT *, IF(refusal = '', barred, refusal) AS reason FROM {$this->table()} WHERE refusal <> '' OR barred <> '' ORDER BY refusal = '', revision DESC LIMIT %d", $limit )
		);
		// phpcs:enable
	}

	/**
	 * Whether this request put something in.
	 *
	 * @return bool
	 */
	public function touched() {
		return $this->touched;
	}

	/**
	 * Runs something that only one process may do at a time; the lock goes with the process, however that ends.
	 *
	 * @param callable $work Run when nobody else does.
	 * @return bool Whether it ran.
	 */
	public function alone( callable $work ) {
		global $wpdb;
		$name = 'pagewire-' . md5( DB_NAME . $wpdb->prefix ); // Names hold for the whole server.
		// phpcs:disable WordPress.DB
		if ( '1' !== (string) $wpdb->get_var( $wpdb->prepare( 'SELECT GET_LOCK(%s, 0)', $name ) ) ) {
			return false;
		}
		try {
			$work();
		} finally {
			$wpdb->query( $wpdb->prepare( 'DO RELEASE_LOCK(%s)', $name ) );
		}
		// phpcs:enable
		return true;
	}

	/**
	 * Milliseconds since 1970.
	 *
	 * @return int
	 */
	public static function now() {
		return (int) floor( microtime( true ) * 1000 );
	}

	/**
	 * The table of this site; another one after switch_to_blog().
	 *
	 * @return string
	 */
	private function table() {
		global $wpdb;
		return $wpdb->prefix . 'pagewire_pages';
	}
}
