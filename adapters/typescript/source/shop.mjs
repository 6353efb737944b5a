// The shop behind three of the tools: a product API over HTTP, and Redis. Node's fetch keeps connections by itself; one
// client of Redis carries everything, pipelined.

import { createClient } from 'redis';
import { z } from 'zod';

import { fail } from './program.mjs';

/** The tools of the shop; none where the environment names no shop. */
export async function shopTools() {
  const { SHOP_API: api, SHOP_REDIS: address } = process.env;
  if (!api || !address) return {};
  return tools(api.replace(/\/+$/, ''), await connect(address));
}

const tools = (api, redis) => ({
  search_products: {
    description: "Searches the shop's products",
    shape: { query: z.string(), limit: z.int().default(10) },
    answer: ({ query, limit }) => ask(`${api}/products?${new URLSearchParams({ q: query, limit })}`)
  },
  get_user_cart: {
    description: 'Tells a user and what lies in the cart',
    shape: { user_id: z.int() },
    answer: async ({ user_id: id }) => {
      const pipeline = redis.multi().hGetAll(`user:${id}`).lRange(`cart:${id}`, 0, -1);
      const [about, cart] = await asked(pipeline);
      if (about.name === undefined) throw new Error(`no user ${id}`);
      const items = cart.map(order);
      return JSON.stringify({ user: { id, name: about.name, tier: about.tier }, items, count: items.length });
    }
  },
  checkout: {
    description: 'Orders items',
    shape: { user_id: z.int(), items: z.array(z.object({ product_id: z.int(), quantity: z.int() })) },
    answer: async ({ user_id: id, items }) => {
      const headers = { 'content-type': 'application/json' };
      const wanted = { method: 'POST', headers, body: JSON.stringify({ items: items.map(plain) }) };
      const { total_cents } = JSON.parse(await ask(`${api}/price`, wanted));
      const pipeline = redis
        .multi()
        .incr(`orders:${id}`)
        .hIncrBy(`user:${id}`, 'spent', total_cents)
        .lPush(`history:${id}`, String(total_cents))
        .lTrim(`history:${id}`, 0, 9);
      const [number] = await asked(pipeline);
      return JSON.stringify({ order: number, total_cents, items: items.length });
    }
  }
});

/** A Redis client, connected or connecting. A command without a connection fails at once instead of waiting. */
async function connect(address) {
  let redis;
  try {
    redis = createClient({ url: address, disableOfflineQueue: true });
  } catch (error) {
    fail(`SHOP_REDIS ${address}: ${error.message}`);
  }
  await new Promise((tried) => {
    redis.on('ready', tried).on('error', tried);
    redis.connect().catch(tried);
  });
  return redis;
}

/** Sends all commands in one write, without a transaction. */
async function asked(pipeline) {
  try {
    return await pipeline.execAsPipeline();
  } catch (error) {
    throw new Error(`Redis: ${error.message}`);
  }
}

/** The body of a reply, which is read completely so that the connection can be reused. */
async function ask(url, options) {
  let response, body;
  try {
    response = await fetch(url, options);
    body = await response.text();
  } catch (error) {
    throw new Error(`the product API: ${error.cause?.message ?? error.message}`);
  }
  if (!response.ok) throw new Error(`the product API answered ${response.status}`);
  return body;
}

/** An element of a cart: `PRODUCT:QUANTITY`. */
function order(element) {
  const [product_id, quantity] = element.split(':').map(Number);
  return { product_id, quantity };
}

/** The members in the contract's order, independent of the client's order. */
function plain({ product_id, quantity }) {
  return { product_id, quantity };
}
