<?php

declare(strict_types=1);

namespace Pagewire\Typo3\Middleware;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;

/**
 * Answers 404 to Pagewire where TYPO3 says 403: a page for members.
 *
 * A 403 alone deletes nothing at Pagewire, because a firewall may have said it. Here TYPO3 itself says it.
 */
final class MembersOnly implements MiddlewareInterface
{
    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $response = $handler->handle($request);
        $asked = str_contains(strtolower($request->getHeaderLine('User-Agent')), 'pagewire');
        return $asked && $response->getStatusCode() === 403 ? $response->withStatus(404) : $response;
    }
}
