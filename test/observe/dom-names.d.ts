// Names of the DOM that the types of playwright-core mention; nothing here runs in a browser.
type Node = object;
type HTMLElement = object;
type SVGElement = object;
type HTMLElementTagNameMap = object;
