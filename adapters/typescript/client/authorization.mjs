// OAuth for the client program: tokens in memory, and somebody who consents.
//
// The flow itself (discovery, registration, PKCE, tokens, refresh) is the SDK's own: it is what is measured. Consent is
// `follow`: the authorization URL is fetched and the code read out of its redirect, for targets that consent by
// themselves.

import { ConsentRefused, Unsupported } from './outcome.mjs';

/** The registered redirect URL. Nothing listens there, because `follow` stops at the Location header. */
const REDIRECT = 'http://localhost:33418/callback';
const FOLLOW_LIMIT_MS = 30_000;

/** Providers and their storage for each server, kept from one connection to the next. */
export class Wallet {
  #stored = new Map();
  #providers = new Map();

  /** Prepares everything for a provider, so that constructing it is one call. The storage is kept unless `fresh` is set. */
  prepare(url, auth) {
    if (auth.consent !== undefined && auth.consent !== 'follow') {
      throw new Unsupported(`consent by ${auth.consent} is not for this program`);
    }
    if (auth.fresh || !this.#stored.has(url)) this.#stored.set(url, {});
    const stored = this.#stored.get(url);
    return { construct: () => new Provider(stored, auth) };
  }

  keep(url, provider) {
    this.#providers.set(url, provider);
  }

  /** The last provider for this server, or a new one. */
  provider(url, auth) {
    if (!this.#providers.has(url)) this.keep(url, this.prepare(url, auth).construct());
    return this.#providers.get(url);
  }
}

/** The SDK's OAuthClientProvider, in memory. */
class Provider {
  #stored;
  #auth;
  #answer = null;

  constructor(stored, auth) {
    this.#stored = stored;
    this.#auth = auth;
  }

  redirectUrl = REDIRECT;

  get clientMetadata() {
    const scope = this.#auth.scope ? { scope: this.#auth.scope } : {};
    return {
      client_name: this.#auth.client_name || 'mcpace',
      redirect_uris: [REDIRECT],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      ...scope
    };
  }

  /** Whether there is an answer that has not been passed on yet. */
  get consented() {
    return this.#answer !== null;
  }

  takeAnswer() {
    const answer = this.#answer;
    this.#answer = null;
    return answer;
  }

  clientInformation() {
    return this.#stored.client;
  }

  saveClientInformation(client) {
    this.#stored.client = client;
  }

  tokens() {
    return this.#stored.tokens;
  }

  saveTokens(tokens) {
    this.#stored.tokens = tokens;
  }

  saveCodeVerifier(verifier) {
    this.#stored.verifier = verifier;
  }

  codeVerifier() {
    return this.#stored.verifier;
  }

  /** Later releases keep the discovered metadata of the server from the redirect to the exchange of the code. */
  saveDiscoveryState(state) {
    this.#stored.discovery = state;
  }

  discoveryState() {
    return this.#stored.discovery;
  }

  async redirectToAuthorization(url) {
    const signal = AbortSignal.timeout(FOLLOW_LIMIT_MS);
    const reply = await fetch(url, { redirect: 'manual', signal });
    await reply.body?.cancel();
    const location = reply.headers.get('location');
    if (![302, 303, 307].includes(reply.status) || location === null) {
      throw new ConsentRefused(`the authorization server answered ${reply.status} instead of a redirect`);
    }
    const answer = new URL(location, url);
    if (!answer.href.startsWith(REDIRECT)) {
      throw new ConsentRefused("the authorization server didn't redirect to the client's callback address");
    }
    if (!answer.searchParams.has('code')) {
      const reason = answer.searchParams.get('error_description') ?? answer.searchParams.get('error');
      throw new ConsentRefused(`authorization was refused: ${reason ?? 'no code in the redirect'}`);
    }
    this.#answer = answer.searchParams;
  }
}
