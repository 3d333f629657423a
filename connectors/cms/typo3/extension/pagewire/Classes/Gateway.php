<?php

declare(strict_types=1);

namespace Pagewire\Typo3;

use Psr\Http\Client\ClientExceptionInterface;
use TYPO3\CMS\Core\Configuration\ExtensionConfiguration;
use TYPO3\CMS\Core\Http\RequestFactory;

/**
 * Tells Pagewire which addresses changed, and reads what became of each.
 */
final class Gateway
{
    private const TIMEOUT = 120; // Seconds: Pagewire visits the pages before it answers, for 90 seconds at most.
    private const LARGEST = 4_000_000; // Bytes of an answer that are read.

    public function __construct(
        private readonly RequestFactory $requests,
        private readonly ExtensionConfiguration $configuration,
    ) {}

    /**
     * @param string[] $addresses
     * @return array<string, array{state: string, detail: string}> By address.
     * @throws Refusal Pagewire is away, or says no; the message says what to do.
     */
    public function changed(array $addresses): array
    {
        $settings = (array)$this->configuration->get('pagewire');
        foreach (['url', 'site', 'connector', 'key'] as $name) {
            if (($settings[$name] ?? '') === '') {
                throw new Refusal("the extension's setting $name is empty");
            }
        }
        $url = rtrim($settings['url'], '/') . '/v1/sites/' . rawurlencode($settings['site']) . '/connectors/' . rawurlencode($settings['connector']) . '/changed';
        try {
            $answer = $this->requests->request($url, 'POST', [
                'json' => ['urlList' => array_values($addresses)],
                'headers' => ['Authorization' => 'Bearer ' . $settings['key'], 'User-Agent' => 'Pagewire-TYPO3'],
                'allow_redirects' => false, // The key is for this server only.
                'http_errors' => false,
                'timeout' => self::TIMEOUT,
            ]);
            $said = json_decode($answer->getBody()->read(self::LARGEST), true);
        } catch (ClientExceptionInterface | \RuntimeException $error) {
            throw new Refusal('Pagewire does not answer: ' . $error->getMessage(), 0, $error);
        }
        $status = $answer->getStatusCode();
        if ($status !== 200 || !is_array($said['addresses'] ?? null)) {
            throw new Refusal($this->problem($status, is_array($said) ? (string)($said['code'] ?? '') : ''));
        }
        return array_column($said['addresses'], null, 'url');
    }

    private function problem(int $status, string $code): string
    {
        return match (true) {
            $status === 200 => 'something answers at this address, but it is not Pagewire',
            $status === 401, $status === 403 => "Pagewire does not know the key, or it may not ingest ($status)",
            $status === 404 && $code !== '' => "Pagewire has no such connector of the kind sitemap ($code)",
            $status === 404 => 'there is a server at this address, but no Pagewire (404)',
            $status >= 300 && $status < 400 => "the address redirects to another one ($status): enter that one",
            default => "Pagewire answered with status $status $code",
        };
    }
}
