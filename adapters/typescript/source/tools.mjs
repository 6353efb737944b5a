// The tools that every adapter's server has: name → what it says of itself, the shape of its arguments, what it does.

import { setTimeout as pause } from 'node:timers/promises';

import { z } from 'zod';

import { shopTools } from './shop.mjs';

const LARGEST_PAYLOAD = 10_000_000;

const common = {
  echo: {
    description: 'Says the text again',
    shape: { text: z.string() },
    answer: ({ text }) => text
  },
  greet: {
    description: 'Greets',
    shape: { name: z.string() },
    answer: ({ name }) => `Hello, ${name}!`
  },
  double: {
    description: 'Doubles a number',
    shape: { n: z.int() },
    answer: ({ n }) => String(2n * BigInt(n))
  },
  wait: {
    description: 'Waits, and lets others work meanwhile',
    shape: { ms: z.int().min(0) },
    answer: async ({ ms }) => {
      await pause(ms);
      return 'waited';
    }
  },
  work: {
    description: 'Burns processor time',
    shape: { us: z.int().min(0) },
    answer: ({ us }) => {
      const end = burnt() + us;
      while (burnt() < end);
      return 'worked';
    }
  },
  payload: {
    description: 'Answers with so many bytes',
    shape: { bytes: z.int().min(0) },
    answer: ({ bytes }) => {
      if (bytes > LARGEST_PAYLOAD) throw new Error(`at most ${LARGEST_PAYLOAD} bytes`);
      return 'x'.repeat(bytes);
    }
  }
};

const tools = { ...common, ...(await shopTools()) };

/** Passes each tool to `register(name, description, shape, handler)`. */
export function registerAll(register) {
  for (const [name, { description, shape, answer }] of Object.entries(tools)) {
    register(name, description, shape, async (given) => ({ content: [{ type: 'text', text: await answer(given) }] }));
  }
}

/** Processor time in microseconds, of this thread where Node provides it, so that other threads' work is excluded. */
function burnt() {
  const { user, system } = process.threadCpuUsage?.() ?? process.cpuUsage();
  return user + system;
}
