// VitePress's own theme, with a link to the text of each page.
import DefaultTheme from 'vitepress/theme';
import { h } from 'vue';
import PageText from './PageText.vue';
import './style.css';

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'doc-footer-before': () => h(PageText) }),
};
