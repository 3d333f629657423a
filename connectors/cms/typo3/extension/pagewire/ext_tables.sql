#
# One row for each page and language whose address Pagewire knows or will know. The waiting ones are the outbox.
#
CREATE TABLE tx_pagewire_page (
    page int(11) unsigned NOT NULL,
    language int(11) unsigned NOT NULL,
    revision int(11) unsigned DEFAULT '0' NOT NULL,
    waiting smallint(5) unsigned DEFAULT '0' NOT NULL,
    address varchar(2000) DEFAULT '' NOT NULL,
    problem varchar(500) DEFAULT '' NOT NULL,
    PRIMARY KEY (page, language),
    KEY waiting (waiting, page)
);
