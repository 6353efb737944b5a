// A server whose one tool works in the way that the first argument names.
import { execFileSync, execFile } from 'node:child_process';
import { pbkdf2, pbkdf2Sync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { promisify } from 'node:util';
import axios from 'axios';
import Redis from 'ioredis';
import pg from 'pg';
import { z } from 'zod';
import { openServer } from './sdk.mjs';

const [way, base, database, redis, big] = process.argv.slice(2);
const KINDS = ['geo', 'now', 'hourly', 'daily', 'alerts'];
const pool = new pg.Pool({ connectionString: database });
const shared = new Redis(redis, { lazyConnect: true });

const Report = z.object({ id: z.number().int(), mail: z.email(), text: z.string().regex(/^[\w ,.]+$/) });
const reports = Array.from({ length: 1_000 }, (_, id) => ({ id, mail: `c${id}@example.org`, text: 'rain, '.repeat(1_000) }));
const validated = z.array(Report).parse(reports);

const get = async (url) => (await fetch(url)).text();
const ask = (url) =>
  new Promise((resolve, reject) => {
    request(url, (reply) => reply.on('end', resolve).resume()).on('error', reject).end();
  });

let ticking;
async function tick() {
  for (;;) await new Promise((resolve) => setTimeout(resolve, 20));
}

const WAYS = {
  async serial() {
    for (const kind of KINDS) await get(`${base}/${kind}`);
  },
  async together() {
    await Promise.all(KINDS.map((kind) => get(`${base}/${kind}`)));
  },
  async serialAxios() {
    for (const kind of KINDS) await axios.get(`${base}/${kind}`);
  },
  async togetherAxios() {
    await Promise.all(KINDS.map((kind) => axios.get(`${base}/${kind}`)));
  },
  async serialHttp() {
    for (const kind of KINDS) await ask(`${base}/${kind}`);
  },
  async statements() {
    for (let id = 0; id < 20; id += 1) {
      await pool.query('SELECT name FROM cities WHERE hex LIKE $1 AND id = $2', [`%${id}%`, id]);
    }
  },
  async statement() {
    await pool.query('SELECT name FROM cities WHERE id = ANY($1)', [[...Array(20).keys()]]);
  },
  async ownPools() {
    const own = new pg.Pool({ connectionString: database });
    await own.query('SELECT name FROM cities WHERE id = 1');
    await own.end();
  },
  async sharedPool() {
    await pool.query('SELECT name FROM cities WHERE id = 1');
  },
  async ownRedis() {
    const own = new Redis(redis);
    await own.get('city');
    await own.quit();
  },
  async keys() {
    for (let id = 0; id < 200; id += 1) await shared.get(`city:${id}`);
  },
  async sharedRedis() {
    await shared.mget(Array.from({ length: 200 }, (_, id) => `city:${id}`));
  },
  async validates() {
    return z.array(Report).parse(reports);
  },
  async keepsValidated() {
    return validated;
  },
  async slow() {
    await get(`${base}/slow`);
  },
  async waits() {
    await new Promise((resolve) => setTimeout(resolve, 100));
  },
  async listens() {
    await new Promise((resolve) => setImmediate(resolve));
  },
  async limits() {
    const limit = setTimeout(() => process.exit(1), 30_000);
    await get(`${base}/slow`);
    clearTimeout(limit);
  },
  async computes() {
    const end = performance.now() + 100;
    while (performance.now() < end) Math.sqrt(2);
  },
  async background() {
    ticking ||= tick();
    await new Promise((resolve) => setInterval(function once() { clearInterval(this); resolve(); }, 100));
  },
  async executes() {
    execFileSync('sleep', ['0.1']);
  },
  async executesAsynchronously() {
    await promisify(execFile)('sleep', ['0.1']);
  },
  async derives() {
    pbkdf2Sync('secret', 'salt', 100_000, 64, 'sha512');
  },
  async derivesAsynchronously() {
    await promisify(pbkdf2)('secret', 'salt', 100_000, 64, 'sha512');
  },
  async reads() {
    for (let time = 0; time < 8; time += 1) readFileSync(big);
  },
  async readsAsynchronously() {
    for (let time = 0; time < 8; time += 1) await readFile(big);
  },
};

await openServer('forecast', async function forecast() {
  await WAYS[way]();
  return way;
});
