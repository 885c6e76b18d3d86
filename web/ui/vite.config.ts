import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

// Relative paths, so that the page works below any prefix; no data: URLs and no inline script, as its policy forbids them.
export default defineConfig({
  base: './',
  plugins: [react()],
  build: { modulePreload: { polyfill: false }, assetsInlineLimit: 0, target: 'es2022', reportCompressedSize: false },
})
