<?php

/**
 * Small stand-ins for what the extension calls of TYPO3: the database over SQLite, requests, settings, locks; and for
 * its own Pages, which needs TYPO3's sites. Everything else is the extension's own code.
 */

namespace Doctrine\DBAL\Exception {
  class UniqueConstraintViolationException extends \Exception {}
}

namespace Psr\Http\Message {
  interface ServerRequestInterface {}
  interface ResponseInterface {}
}

namespace Psr\Http\Server {
  interface MiddlewareInterface {}
  interface RequestHandlerInterface {}
}

namespace Psr\Http\Client {
  interface ClientExceptionInterface extends \Throwable {}
}

namespace TYPO3\CMS\Core\Locking\Exception {
  class LockAcquireWouldBlockException extends \Exception {}
}

namespace TYPO3\CMS\Core\Locking {

  interface LockingStrategyInterface {
    const LOCK_CAPABILITY_EXCLUSIVE = 1;
    const LOCK_CAPABILITY_NOBLOCK = 4;
  }

  class LockFactory {

    public $held = FALSE;

    public function createLocker() {
      return $this;
    }

    public function acquire() {
      if ($this->held) {
        throw new Exception\LockAcquireWouldBlockException();
      }
    }

    public function release() {}

  }

}

namespace TYPO3\CMS\Core\DataHandling {
  class DataHandler {}
}

namespace TYPO3\CMS\Core\Configuration {

  class ExtensionConfiguration {

    public $values = ['url' => 'https://pagewire.example/', 'site' => 'town', 'connector' => 'typo3', 'key' => 'k'];

    public function get() {
      return $this->values;
    }

  }

}

namespace TYPO3\CMS\Core\Http {

  /**
   * Keeps what it is sent; answers as a test wants, else that all is accepted.
   */
  class RequestFactory {

    public $requests = [];
    public $answers = [];

    public function request($url, $method, $options) {
      $this->requests[] = ['url' => $url, 'method' => $method] + $options;
      $said = array_shift($this->answers);
      if ($said instanceof \Closure) {
        $said = $said($options['json']['urlList']);
      }
      $states = is_array($said) ? $said : [];
      $outcomes = array_map(fn ($url) => ['url' => $url, 'state' => $states[$url] ?? 'accepted', 'detail' => 'why'], $options['json']['urlList']);
      return new class(is_int($said) ? $said : 200, is_string($said) ? $said : json_encode(['addresses' => $outcomes])) {

        public function __construct(private $status, private $body) {}

        public function getStatusCode() {
          return $this->status;
        }

        public function getBody() {
          return $this;
        }

        public function read() {
          return $this->body;
        }

      };
    }

  }

}

namespace TYPO3\CMS\Core\Database {

  class Connection {

    public function __construct(public \PDO $pdo) {}

    public function executeStatement($sql, $values) {
      $statement = $this->pdo->prepare($sql);
      $statement->execute($values);
      return $statement->rowCount();
    }

    public function insert($table, $row) {
      try {
        $this->executeStatement("INSERT INTO $table (" . implode(', ', array_keys($row)) . ') VALUES (' . implode(', ', array_fill(0, count($row), '?')) . ')', array_values($row));
      }
      catch (\PDOException $error) {
        throw new \Doctrine\DBAL\Exception\UniqueConstraintViolationException();
      }
    }

    public function update($table, $set, $where) {
      $pairs = fn ($of, $glue) => implode($glue, array_map(fn ($name) => "$name = ?", array_keys($of)));
      return $this->executeStatement("UPDATE $table SET " . $pairs($set, ', ') . ' WHERE ' . $pairs($where, ' AND '), [...array_values($set), ...array_values($where)]);
    }

    public function fetchAllAssociative($sql) {
      return $this->pdo->query($sql)->fetchAll(\PDO::FETCH_ASSOC);
    }

    public function fetchOne($sql) {
      return $this->pdo->query($sql)->fetchColumn();
    }

  }

  class ConnectionPool {

    public function __construct(private $pdo) {}

    public function getConnectionForTable() {
      return new Connection($this->pdo);
    }

  }

}

namespace Pagewire\Typo3 {

  /**
   * Addresses by `PAGE LANGUAGE`; languages and pages below by page.
   */
  class Pages {

    public $addresses = [];
    public $languages = [];
    public $below = [];

    public function address($page, $language) {
      return $this->addresses["$page $language"] ?? '';
    }

    public function languages($page) {
      return $this->languages[$page] ?? [0];
    }

    public function below($page) {
      return $this->below[$page] ?? [];
    }

  }

}

namespace {

  spl_autoload_register(function ($class) {
    require EXTENSION . '/Classes/' . str_replace(['Pagewire\\Typo3\\', '\\'], ['', '/'], $class) . '.php';
  });

  $pdo = new PDO('sqlite::memory:', NULL, NULL, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
  $pdo->exec("CREATE TABLE tx_pagewire_page (page INTEGER, language INTEGER, revision INTEGER DEFAULT 0, waiting INTEGER DEFAULT 0, address TEXT DEFAULT '', problem TEXT DEFAULT '', PRIMARY KEY (page, language))");
  $outbox = new Pagewire\Typo3\Outbox(new TYPO3\CMS\Core\Database\ConnectionPool($pdo));
  $pages = new Pagewire\Typo3\Pages();
  $requests = new TYPO3\CMS\Core\Http\RequestFactory();
  $configuration = new TYPO3\CMS\Core\Configuration\ExtensionConfiguration();
  $locks = new TYPO3\CMS\Core\Locking\LockFactory();
  $sender = new Pagewire\Typo3\Sender($outbox, $pages, new Pagewire\Typo3\Gateway($requests, $configuration), $locks);
  $marks = new Pagewire\Typo3\Hook\Marks($outbox, $pages);
  $rows = fn () => $pdo->query('SELECT * FROM tx_pagewire_page ORDER BY page, language')->fetchAll(PDO::FETCH_ASSOC);
  $asked = fn () => array_map(fn ($one) => $one['json']['urlList'], $requests->requests);
  $drain = function () use ($sender) {
    try {
      $sender->drain(microtime(TRUE) + 5);
      return '';
    }
    catch (Pagewire\Typo3\Refusal $refusal) {
      return $refusal->getMessage();
    }
  };

}
