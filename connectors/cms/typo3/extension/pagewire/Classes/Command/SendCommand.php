<?php

declare(strict_types=1);

namespace Pagewire\Typo3\Command;

use Pagewire\Typo3\Outbox;
use Pagewire\Typo3\Refusal;
use Pagewire\Typo3\Sender;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;

/**
 * `pagewire:send`, from the system's cron or the scheduler. Exit code 1: something still waits.
 */
final class SendCommand extends Command
{
    private const SHOWN = 50;

    public function __construct(
        private readonly Sender $sender,
        private readonly Outbox $outbox,
    ) {
        parent::__construct();
    }

    protected function configure(): void
    {
        $this->addOption('seconds', null, InputOption::VALUE_REQUIRED, 'Go on for so long, and look for new marks each second.', '0');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $end = microtime(true) + (float)$input->getOption('seconds');
        $problem = '';
        do {
            try {
                $this->sender->drain(max($end, microtime(true) + 300));
                $problem = '';
            } catch (Refusal $refusal) {
                $problem = $refusal->getMessage();
            }
            $again = microtime(true) < $end - 1;
            usleep($again ? 1_000_000 : 0);
        } while ($again);
        $waiting = $this->outbox->length();
        $output->writeln("$waiting waiting" . ($problem === '' ? '' : ": $problem"));
        foreach ($output->isVerbose() ? $this->outbox->refused(self::SHOWN) : [] as $row) {
            $output->writeln("page {$row['page']}, language {$row['language']}: {$row['problem']} ({$row['address']})", OutputInterface::OUTPUT_RAW);
        }
        return $waiting ? Command::FAILURE : Command::SUCCESS;
    }
}
