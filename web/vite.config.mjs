// One script and one style without imports: report/page/html.py puts both into the page and names their digests in its policy.
import { defineConfig } from "vite";

export default defineConfig({
  build: {
    outDir: "../python/mcpace/report/assets",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    reportCompressedSize: false,
    lib: { entry: "src/main.ts", formats: ["iife"], name: "mcpace", fileName: () => "report.js", cssFileName: "report" },
  },
});
