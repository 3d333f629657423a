<?php

/**
 * Small stand-ins for what the module calls of Drupal: the database over SQLite, state, lock, clock; and for its own
 * Pages and Visitor, which need a whole Drupal. Everything else is the module's own code.
 */

namespace Drupal\Component\Datetime {
  interface TimeInterface {}
}

namespace Drupal\Core\Lock {
  interface LockBackendInterface {}
}

namespace Drupal\Core\State {
  interface StateInterface {}
}

namespace Drupal\Core\Config {
  interface ConfigFactoryInterface {}
}

namespace Drupal\Core\Site {

  class Settings {

    public static function get($name, $default) {
      return $default;
    }

  }

}

namespace GuzzleHttp {
  interface ClientInterface {}
}

namespace GuzzleHttp\Exception {
  interface GuzzleException extends \Throwable {}
}

namespace Drupal\Core\Database {

  class Connection {

    public function __construct(public \PDO $pdo) {}

    public function query($sql, $values = []) {
      $statement = $this->pdo->prepare(preg_replace('/\{(\w+)\}/', '$1', $sql));
      $statement->execute($values);
      return new class($statement) {

        public function __construct(private $rows) {}

        public function fetchCol() {
          return $this->rows->fetchAll(\PDO::FETCH_COLUMN);
        }

        public function fetchAll() {
          return $this->rows->fetchAll(\PDO::FETCH_OBJ);
        }

        public function fetchField() {
          return $this->rows->fetchColumn();
        }

        public function fetchObject() {
          return $this->rows->fetchObject();
        }

        public function count() {
          return $this->rows->rowCount();
        }

      };
    }

    public function update($table) {
      return new Query($this, $table);
    }

    public function merge($table) {
      return new Query($this, $table);
    }

    public function select($table) {
      return new Query($this, $table, TRUE);
    }

  }

  class Query {

    private $keys = [];
    private $insert = [];
    private $set = [];
    private $where = [];
    private $order = [];
    private $limit = '';
    private $values = [];

    public function __construct(private $database, private $table, private $reads = FALSE) {}

    public function fields($fields) {
      return is_array($fields) ? $this->updateFields($fields) : $this;
    }

    public function keys($keys) {
      $this->keys = $keys;
      return $this;
    }

    public function insertFields($fields) {
      $this->insert = $fields;
      return $this;
    }

    public function updateFields($fields) {
      foreach ($fields as $name => $value) {
        $this->expression($name, ":f_$name", [":f_$name" => $value]);
      }
      return $this;
    }

    public function expression($name, $sql, $values) {
      $this->set[] = "$name = $sql";
      $this->values += $values;
      return $this;
    }

    public function condition($name, $value, $operator = '=') {
      $this->where[] = "$name $operator :w_$name";
      $this->values[":w_$name"] = $value;
      return $this;
    }

    public function orderBy($name) {
      $this->order[] = $name;
      return $this;
    }

    public function range($from, $limit) {
      $this->limit = " LIMIT $limit";
      return $this;
    }

    public function execute() {
      if ($this->insert) {
        $names = implode(', ', array_keys($this->insert));
        $holders = implode(', ', array_map(fn ($name) => ":$name", array_keys($this->insert)));
        $new = $this->database->query("INSERT OR IGNORE INTO $this->table ($names) VALUES ($holders)", $this->insert);
        if ($new->count()) {
          return 1;
        }
      }
      foreach ($this->keys as $name => $value) {
        $this->condition($name, $value);
      }
      $where = $this->where ? ' WHERE ' . implode(' AND ', $this->where) : '';
      if ($this->reads) {
        $order = $this->order ? ' ORDER BY ' . implode(', ', $this->order) : '';
        return $this->database->query("SELECT * FROM $this->table$where$order$this->limit", $this->values);
      }
      return $this->database->query("UPDATE $this->table SET " . implode(', ', $this->set) . $where, $this->values)->count();
    }

  }

}

namespace Drupal\pagewire {

  class Visitor {

    public function run($work) {
      $work();
    }

  }

  /**
   * Public pages are the entries of an array: `node-1 en` => title, or what their rendering throws.
   */
  class Pages {

    public $public = [];
    public $rendered = 0;

    public function find($id, $lang) {
      return isset($this->public["$id $lang"]) ? "$id $lang" : NULL;
    }

    public function id($page) {
      return explode(' ', $page)[0];
    }

    public function lang($page) {
      return explode(' ', $page)[1];
    }

    public function after($nid, $limit) {
      $found = array_filter(array_keys($this->public), fn ($page) => sscanf($page, 'node-%d')[0] > $nid);
      $found = array_slice(array_values($found), 0, $limit);
      return [$found, $found ? sscanf(end($found), 'node-%d')[0] : 0];
    }

    public function document($page) {
      $this->rendered++;
      $said = $this->public[$page];
      if ($said instanceof \Closure) {
        $said = $said();
      }
      return ['id' => $this->id($page), 'lang' => $this->lang($page), 'title' => $said, 'content' => "<p>$said</p>"];
    }

  }

}

namespace {

  use Drupal\pagewire\Gateway;
  use Drupal\pagewire\Outbox;
  use Drupal\pagewire\Pages;
  use Drupal\pagewire\PagewireSettings;
  use Drupal\pagewire\Sender;
  use Drupal\pagewire\Survey;
  use Drupal\pagewire\Visitor;

  spl_autoload_register(function ($class) {
    require MODULE . '/src/' . str_replace(['Drupal\\pagewire\\', '\\'], ['', '/'], $class) . '.php';
  });

  class Clock implements Drupal\Component\Datetime\TimeInterface {

    public $now = 1000;

    public function getCurrentMicroTime() {
      return $this->now / 1000;
    }

  }

  class State implements Drupal\Core\State\StateInterface {

    public $values = [];

    public function get($name, $default = NULL) {
      return $this->values[$name] ?? $default;
    }

    public function set($name, $value) {
      $this->values[$name] = $value;
    }

    public function delete($name) {
      unset($this->values[$name]);
    }

  }

  class Lock implements Drupal\Core\Lock\LockBackendInterface {

    public function acquire() {
      return TRUE;
    }

    public function release() {}

  }

  class Configuration implements Drupal\Core\Config\ConfigFactoryInterface {

    public function get($name) {
      return is_string($name) && $name !== 'pagewire.settings'
        ? ['url' => 'https://pagewire.example/', 'site' => 'town', 'connector' => 'drupal', 'types' => []][$name] ?? '' : $this;
    }

  }

  /**
   * Keeps what it is sent; answers as a test wants, else as Pagewire does.
   */
  class Pagewire implements GuzzleHttp\ClientInterface {

    public $requests = [];
    public $answers = [];

    public function request($method, $url, $options) {
      $this->requests[] = ['method' => $method, 'url' => $url] + $options;
      $said = array_shift($this->answers);
      if ($said instanceof Closure) {
        $said = $said();
      }
      [$status, $data, $headers] = ($said ?? []) + [200, ['accepted' => substr_count($options['body'], "\n"), 'rejected' => 0, 'superseded' => 0, 'errors' => []], []];
      return new class($status, $data, $headers) {

        public function __construct(private $status, private $data, private $headers) {}

        public function getStatusCode() {
          return $this->status;
        }

        public function getBody() {
          return $this;
        }

        public function read() {
          return json_encode($this->data);
        }

        public function getHeaderLine($name) {
          return $this->headers[$name] ?? '';
        }

      };
    }

  }

  $pdo = new PDO('sqlite::memory:', NULL, NULL, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
  $pdo->exec("CREATE TABLE pagewire_page (page_id TEXT, lang TEXT, revision INTEGER, waiting INTEGER DEFAULT 0, tries INTEGER DEFAULT 0, digest TEXT DEFAULT '', problem TEXT DEFAULT '', PRIMARY KEY (page_id, lang))");
  $state = new State();
  $state->set('pagewire.secret', SECRET);
  $clock = new Clock();
  $pagewire = new Pagewire();
  $settings = new PagewireSettings(new Configuration(), $state);
  $outbox = new Outbox(new Drupal\Core\Database\Connection($pdo), $clock);
  $pages = new Pages();
  $sender = new Sender($settings, $outbox, $pages, new Visitor(), new Gateway($pagewire, $settings), new Lock(), $state);
  $survey = new Survey($outbox, $pages);
  $rows = fn () => $pdo->query('SELECT * FROM pagewire_page ORDER BY page_id, lang')->fetchAll(PDO::FETCH_ASSOC);

}
