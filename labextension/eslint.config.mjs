import tseslint from 'typescript-eslint';

// What the program says is text: the panel never makes HTML of it.
const html = 'The program\'s text is never HTML: use textContent.';

export default tseslint.config(
  { ignores: ['node_modules'] },
  ...tseslint.configs.strict,
  ...tseslint.configs.stylistic,
  {
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'error',
      'no-console': 'error',
      eqeqeq: ['error', 'smart'],
      'no-eval': 'error',
      'no-restricted-properties': [
        'error',
        { property: 'innerHTML', message: html },
        { property: 'outerHTML', message: html },
        { property: 'insertAdjacentHTML', message: html },
        { object: 'document', property: 'write', message: html }
      ],
      'max-lines': ['error', 250]
    }
  },
  {
    files: ['**/*.mjs'],
    languageOptions: { globals: { process: 'readonly', URL: 'readonly' } },
    rules: { 'no-console': 'off' }
  }
);
