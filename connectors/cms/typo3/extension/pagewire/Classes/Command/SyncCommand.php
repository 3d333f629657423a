<?php

declare(strict_types=1);

namespace Pagewire\Typo3\Command;

use Pagewire\Typo3\Outbox;
use Pagewire\Typo3\Pages;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;

/**
 * `pagewire:sync`: marks every page of every site, behind the saves.
 */
final class SyncCommand extends Command
{
    public function __construct(
        private readonly Outbox $outbox,
        private readonly Pages $pages,
    ) {
        parent::__construct();
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        foreach ($this->pages->all() as $page) {
            foreach ($this->pages->languages($page) as $language) {
                $this->outbox->mark($page, (int)$language, Outbox::BULK);
            }
        }
        $output->writeln($this->outbox->length() . ' waiting');
        return Command::SUCCESS;
    }
}
