"""The whole way: an editor in Drupal's forms, and what Pagewire finds; after each step both agree."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.acceptance.system import eventually
from tests.drupal.conftest import Town

pytestmark = [pytest.mark.engine, pytest.mark.drupal]


@pytest.fixture(autouse=True)
def _audited(town: Town) -> Iterator[None]:
    """After each story the index is what the log says."""
    yield
    audit = town.instance.run("audit", town.instance.site)
    assert audit.returncode == 0, audit.stdout + audit.stderr


def test_an_editor_publishes_edits_unpublishes_and_deletes(town: Town) -> None:
    node = town.editor.publish(
        "/node/add/article", "Sauna", "<p>The sauna costs 8 euros.</p>", **{"status[value]": "1"}
    )
    town.shows("sauna euros", "The sauna costs 8 euros.")
    with town.site() as site:
        answer = site.post("/chat", json={"question": "How much does the sauna cost?", "lang": "en"}).json()
    assert "8 euros" in answer["answer"]
    assert httpx.get(answer["sources"][0]["url"]).status_code == 200

    town.editor.publish(f"/node/{node}/edit", "Sauna", "<p>The sauna costs 9 euros.</p>")
    town.shows("sauna euros", "The sauna costs 9 euros.")
    town.drupal.php(f"Node::load({node})->setUnpublished()->save();")
    town.drupal.drush("pagewire:send")
    town.shows("sauna euros")
    town.drupal.php(f"Node::load({node})->setPublished()->save();")
    town.drupal.drush("pagewire:send")
    town.shows("sauna euros", "The sauna costs 9 euros.")
    town.editor.submit(f"/node/{node}/delete", op="Delete")
    town.shows("sauna euros")


def test_each_translation_is_a_page_and_a_removed_one_goes(town: Town) -> None:
    town.drupal.php(
        "$n = article('Ferry', 'The ferry leaves at nine.');"
        "$n->addTranslation('de', ['title' => 'Fähre', 'status' => 1, 'body' => text('Die Fähre fährt um neun.')]);"
        "$n->save();"
    )
    town.drupal.drush("pagewire:send")
    town.shows("ferry nine", "The ferry leaves at nine.")
    town.shows("Fähre neun", "Die Fähre fährt um neun.", lang="de")
    with town.site() as site:
        hits = site.get("/search", params={"q": "Fähre", "mode": "keyword"}).json()["hits"]
    assert {hit["url"].removeprefix(town.drupal.url)[:4] for hit in hits} == {"/de/"}
    town.drupal.php("$n = titled('Ferry'); $n->removeTranslation('de'); $n->save();")
    town.drupal.drush("pagewire:send")
    town.shows("Fähre neun", lang="de")
    town.shows("ferry nine", "The ferry leaves at nine.")


def test_only_what_visitors_may_see_leaves(town: Town) -> None:
    """A page that is not published, a draft of a published one, and the text of a workspace."""
    town.drupal.php(
        "article('Draft', 'The zeppelin is secret.', ['status' => 0])->save();"
        "$n = article('Tower', 'The tower is old.'); $n->save();"
        "$n->setNewRevision(TRUE); $n->isDefaultRevision(FALSE);"
        "$n->body = text('A zeppelin on the tower.'); $n->save();"
        "Workspace::load('stage') || Workspace::create(['id' => 'stage', 'label' => 'Stage'])->save();"
        "$stage = \\Drupal::service('workspaces.manager'); $stage->setActiveWorkspace(Workspace::load('stage'));"
        "$n = Node::load($n->id()); $n->body = text('A zeppelin of the workspace.'); $n->save();"
        "\\Drupal::service('pagewire.outbox')->mark('node-' . $n->id(), ['en']);"
        "\\Drupal::service('pagewire.sender')->drain(20);"
    )
    town.shows("tower", "The tower is old.")
    assert town.found("zeppelin") == []
    assert town.reconcile()["newer"] == 0
    assert town.found("zeppelin") == []


def test_reconcile_finds_what_no_hook_has_told(town: Town) -> None:
    """A text changed by SQL, a renamed term, a permission taken and given back."""
    town.drupal.php(
        "$t = Term::create(['vid' => 'tags', 'name' => 'harbour']); $t->save();"
        "article('Quay', 'The quay has a crane.', ['field_tags' => [$t]])->save();"
    )
    town.drupal.drush("pagewire:send")
    assert town.reconcile()["newer"] == 0
    town.drupal.php(
        "$table = \\Drupal::database()->update('node__body')->fields(['body_value' => '<p>Two cranes.</p>']);"
        "$table->condition('entity_id', titled('Quay')->id())->execute(); drupal_flush_all_caches();"
    )
    assert town.reconcile()["newer"] == 1
    assert town.reconcile()["newer"] == 0
    town.drupal.php("$t = current(Term::loadMultiple()); $t->name = 'waterside'; $t->save();")
    assert town.reconcile()["newer"] == 1
    town.drupal.php("user_role_revoke_permissions('anonymous', ['access content']);")
    gone = town.instance.run("reconcile", town.instance.site, "drupal", "--json", "--force")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    town.shows("cranes")
    town.drupal.php("user_role_grant_permissions('anonymous', ['access content']);")
    assert town.reconcile()["newer"] >= 1
    eventually(lambda: any("Two cranes." in text for text in town.found("cranes")), timeout=60)


def test_an_unsigned_request_gets_no_answer_and_no_cache_keeps_one(town: Town) -> None:
    town.reconcile()
    for path in ("/pagewire/inventory?after=", "/pagewire/pages?page=en:node-1"):
        answer = httpx.get(town.drupal.url + path)
        assert (answer.status_code, answer.json()["code"]) == (401, "bad-signature")
