// See HtmlPage.h.
#include "tools/graph/HtmlPage.h"

using namespace llvm;

namespace tenon::graph {

static constexpr StringLiteral pageRules = R"css(
*{box-sizing:border-box}
html,body{margin:0;height:100%}
body{display:grid;grid-template:auto 1fr/1fr auto;font:13px/1.45 Inter,"Segoe UI","Helvetica Neue",Arial,"DejaVu Sans",sans-serif;
 --paper:#fff;--ink:#1c2128;--muted:#667080;--line:#d8dde4;--soft:#f4f6f8;background:var(--paper);color:var(--ink)}
[data-theme=dark] body{--paper:#14171c;--ink:#e4e8ee;--muted:#929dac;--line:#333b47;--soft:#1d222a;color-scheme:dark}
header{grid-column:1/3;display:flex;flex-wrap:wrap;gap:6px 28px;align-items:center;padding:12px 20px;border-bottom:1px solid var(--line)}
h1{font-size:17px;letter-spacing:-.2px;margin:0}
header p{margin:0;color:var(--muted)}
header .legend-box{flex:1 1 560px;min-width:0}
nav{display:flex;gap:6px}
button{font:inherit;color:inherit;background:var(--soft);border:1px solid var(--line);border-radius:7px;padding:3px 10px;cursor:pointer}
button:hover{border-color:var(--muted)}
main{overflow:auto;cursor:grab;outline:none}
main.dragging{cursor:grabbing;user-select:none}
main svg{display:block;margin:0 auto}
aside{width:370px;overflow:auto;border-left:1px solid var(--line);padding:16px 20px}
aside[hidden]{display:none}
aside h2{font-size:14px;margin:0 0 10px;overflow-wrap:anywhere}
aside dl{margin:0}
aside dt{color:var(--muted);font-size:11px;margin-top:8px}
aside dd{margin:0;font:12px/1.5 ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
aside h3{font-size:12px;margin:16px 0 0;border-top:1px solid var(--line);padding-top:10px}
.node,.badge{cursor:pointer}
.node.chosen>.box{stroke-width:3px}
.closed>.item{display:none}
.summary{font-size:12px}
)css";

// Folding, panning, choosing. All text comes from the picture.
static constexpr StringLiteral pageScript = R"js(
'use strict';
const svg = document.querySelector('main svg'), view = document.querySelector('main');
const box = svg.viewBox.baseVal, header = 16, foot = 24;
let scale = 1;
const make = (name, attributes, text) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  return element;
};
const children = (element, kind) => [...element.children].filter(child => child.matches(kind));

// --- Layers: closed (a line), open (drawn once) or all (each drawn)

// Stacks the items of an element from y on; returns where they end.
function stack(element, y) {
  for (const item of children(element, '.item')) {
    item.setAttribute('transform', `translate(0,${y})`);
    y += item.matches('.group') ? stackGroup(item) : +item.dataset.h;
  }
  return y;
}
function stackGroup(group) {
  const closed = group.classList.contains('closed');
  const height = closed ? 58 : stack(group, 18) + 12;
  children(group, '.frame')[0].setAttribute('height', height - 12);
  const [above, below] = children(group, '.stream');
  const x = above.getAttribute('d').match(/M([\d.]+)/)[1];
  above.setAttribute('d', `M${x} 0V${closed ? height + .5 : 18.5}`);
  if (below) below.setAttribute('d', closed ? '' : `M${x} ${height - 12}V${height + .5}`);
  return height;
}
function restack() {
  box.height = header + stack(svg.querySelector('.stack'), 0) + foot;
  zoom(scale);
}
// "layers.{0…29}" becomes "layers.7" in round 7.
function number(element, round) {
  const walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let text; (text = walk.nextNode());)
    text.data = text.data.replace(/\{(\d+)(?:, (\d+))?…(\d+)\}/g,
        (all, first, second) => +first + round * (second ? second - first : 1));
}
function setState(group, state) {
  if (group.dataset.state === 'all') {
    children(group, '.item').forEach(item => item.remove());
    group.saved.forEach(item => group.append(item));
  }
  group.dataset.state = state;
  group.classList.toggle('closed', state === 'closed');
  if (state === 'all') {
    group.saved = children(group, '.item');
    group.saved.forEach(item => item.remove());
    for (let round = 0; round < +group.dataset.count; ++round)
      for (const item of group.saved) {
        const copy = item.cloneNode(true);
        if (!item.matches('.group') && !item.querySelector('.group')) number(copy, round);
        group.append(copy);
      }
  }
  const all = group.querySelector(':scope>.all text');
  all.textContent = state === 'all' ? 'once' : 'all';
  group.querySelector(':scope>.all').setAttribute('display', state === 'closed' ? 'none' : '');
  group.querySelector(':scope>.summary').setAttribute('display', state === 'closed' ? '' : 'none');
  restack();
}
function prepare(group) {
  const badge = children(group, '.badge')[0], rect = badge.querySelector('rect');
  const at = badge.transform.baseVal.consolidate().matrix;
  badge.setAttribute('tabindex', 0);
  badge.append(make('title', {}, 'fold or unfold'));
  const all = make('g', {class: 'badge all', tabindex: 0,
                         transform: `translate(${at.e - 56},${at.f})`});
  all.append(make('rect', {width: 48, height: 22, rx: 11}),
             make('text', {x: 24, y: 15.5, 'text-anchor': 'middle'}, 'all'),
             make('title', {}, 'draw every repetition, or one'));
  group.append(all);
  const names = [...group.querySelectorAll('.node .title,.node .sign')].map(e => e.textContent);
  const middle = +children(group, '.frame')[0].getAttribute('x') + 240;
  group.append(make('text', {class: 'summary', x: middle, y: 32, display: 'none'},
                    names.slice(0, 6).join(' · ') + (names.length > 6 ? ' …' : '')));
  const press = (element, action) => {
    element.addEventListener('click', action);
    element.addEventListener('keydown', e => { if (e.key === 'Enter') action(); });
  };
  press(badge, () => setState(group, group.dataset.state === 'closed' ? 'open' : 'closed'));
  press(all, () => setState(group, group.dataset.state === 'all' ? 'open' : 'all'));
  group.dataset.state = 'open';
}
const groups = [...svg.querySelectorAll('.group')].filter(g => !g.parentNode.closest('.group'));
groups.forEach(prepare);
const setAll = state => groups.forEach(group => setState(group, state));

// --- Pan and zoom

function zoom(to) {
  scale = Math.min(4, Math.max(.1, to));
  svg.setAttribute('width', box.width * scale);
  svg.setAttribute('height', box.height * scale);
}
const fit = () => zoom(Math.min(1.25, (view.clientWidth - 20) / box.width));
view.addEventListener('wheel', event => {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const x = (view.scrollLeft + event.offsetX) / scale, y = (view.scrollTop + event.offsetY) / scale;
  zoom(scale * Math.exp(-event.deltaY / 400));
  view.scrollTo(x * scale - event.offsetX, y * scale - event.offsetY);
}, {passive: false});
let from = null;
view.addEventListener('pointerdown', event => {
  if (event.button === 0)
    from = {x: event.clientX + view.scrollLeft, y: event.clientY + view.scrollTop};
});
addEventListener('pointermove', event => {
  if (!from) return;
  view.classList.add('dragging');
  view.scrollTo(from.x - event.clientX, from.y - event.clientY);
});
addEventListener('pointerup', () => { from = null; view.classList.remove('dragging'); });

// --- What is known of a node

const panel = document.querySelector('aside');
svg.addEventListener('click', event => {
  svg.querySelectorAll('.chosen').forEach(node => node.classList.remove('chosen'));
  const node = event.target.closest('.node');
  panel.hidden = !node;
  if (!node) return;
  node.classList.add('chosen');
  const [name, ...lines] = node.querySelector('title').textContent.split('\n');
  const add = (list, kind, text) => {
    const element = document.createElement(kind);
    element.textContent = text;
    list.append(element);
    return element;
  };
  panel.replaceChildren();
  add(panel, 'h2', name);
  let list = add(panel, 'dl', '');
  for (const line of lines) {
    if (line.startsWith('• ')) {
      add(panel, 'h3', line.slice(2));
      list = add(panel, 'dl', '');
      continue;
    }
    const at = line.indexOf(': ');
    add(list, 'dt', line.slice(0, at).trim());
    add(list, 'dd', line.slice(at + 2));
  }
});

// --- Buttons and keys

const actions = {
  fold: () => setAll('closed'), once: () => setAll('open'), all: () => setAll('all'),
  in: () => zoom(scale * 1.25), out: () => zoom(scale / 1.25), fit,
  theme: () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'),
};
document.querySelectorAll('button').forEach(button =>
  button.addEventListener('click', actions[button.dataset.do]));
function setTheme(theme) { document.documentElement.dataset.theme = theme; }
setTheme(matchMedia('(prefers-color-scheme:dark)').matches ? 'dark' : 'light');
fit();
)js";

void writeHtml(const Graph &graph, const Caption &caption, raw_ostream &out) {
  std::string title = escape(caption.title), subtitle = escape(caption.subtitle);
  out << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      << "<meta name=\"viewport\" content=\"width=device-width\">\n"
      << "<title>" << title << ": " << subtitle << "</title>\n<style>" << pageRules
      << getTypeRules() << getStyle("svg.tenon", false)
      << getStyle("[data-theme=dark] svg.tenon", true) << "</style>\n</head>\n<body>\n"
      << "<header>\n<div><h1>" << title << "</h1><p>" << subtitle << "</p></div>\n"
      << "<div class=\"legend-box\"><svg class=\"tenon\" width=\"820\" height=\"14\" "
         "viewBox=\"-1 -1 820 14\" role=\"img\" aria-label=\"legend\">\n";
  writeLegend(graph, out);
  out << "</svg></div>\n<nav aria-label=\"view\">"
      << "<button data-do=\"fold\" title=\"close all layers\">fold</button>"
      << "<button data-do=\"once\" title=\"draw a repeated layer once\">once</button>"
      << "<button data-do=\"all\" title=\"draw every layer\">all</button>"
      << "<button data-do=\"out\" aria-label=\"smaller\">−</button>"
      << "<button data-do=\"in\" aria-label=\"larger\">+</button>"
      << "<button data-do=\"fit\" title=\"fit the width\">fit</button>"
      << "<button data-do=\"theme\" aria-label=\"light or dark\">◐</button></nav>\n</header>\n"
      << "<main tabindex=\"0\">\n";
  writeInlineSvg(graph, caption, out);
  out << "</main>\n<aside hidden aria-live=\"polite\"></aside>\n<script>" << pageScript
      << "</script>\n</body>\n</html>\n";
}

} // namespace tenon::graph
