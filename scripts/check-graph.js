// Looks for faults of a graph's layout with the browser's own measures: text that leaves its box,
// boxes or labels that overlap, nodes that are missing. scripts/check-graph.sh puts this into a copy
// of a picture or page of `tenon graph`; what was found becomes <body data-check>.
'use strict';
function findFaults(svg) {
  const faults = [], slack = 0.75;
  const visible = element => element.getClientRects().length && element.getBBox().width > 0;
  const inside = (a, b) => a.left >= b.left - slack && a.right <= b.right + slack &&
                           a.top >= b.top - slack && a.bottom <= b.bottom + slack;
  const apart = (a, b) => a.right <= b.left + slack || b.right <= a.left + slack ||
                          a.bottom <= b.top + slack || b.bottom <= a.top + slack;
  const rectOf = element => element.getBoundingClientRect();
  const nodes = [...svg.querySelectorAll('.node')].filter(node => visible(node.querySelector('.box')));
  const boxes = nodes.map(node => rectOf(node.querySelector('.box')));
  const name = node => node.querySelector('text').textContent;
  for (const node of nodes)
    for (const text of node.querySelectorAll('text')) {
      const outer = text.parentNode.querySelector(':scope>.box');
      if (!inside(rectOf(text), rectOf(outer))) faults.push(`"${text.textContent}" leaves its box`);
      const other = text.nextElementSibling;
      if (other && other.matches('text') && !apart(rectOf(text), rectOf(other)))
        faults.push(`"${text.textContent}" and "${other.textContent}" overlap`);
    }
  // From top to bottom only the few before can reach so far down.
  const order = boxes.map((_, i) => i).sort((a, b) => boxes[a].top - boxes[b].top);
  order.forEach((i, at) => {
    for (let j = Math.max(0, at - 40); j < at; ++j)
      if (!apart(boxes[i], boxes[order[j]]))
        faults.push(`${name(nodes[i])} and ${name(nodes[order[j]])} overlap`);
  });
  const labels = [...svg.querySelectorAll('.label')].filter(visible);
  const places = labels.map(rectOf), whole = rectOf(svg);
  labels.forEach((label, i) => {
    if (!inside(places[i], whole)) faults.push(`"${label.textContent}" leaves the picture`);
    if (boxes.some(box => !apart(places[i], box))) faults.push(`"${label.textContent}" is on a box`);
    for (let j = Math.max(0, i - 8); j < i; ++j)
      if (!apart(places[i], places[j])) faults.push(`"${label.textContent}" is on another label`);
  });
  boxes.forEach((box, i) => {
    if (!inside(box, whole)) faults.push(`${name(nodes[i])} leaves the picture`);
  });
  return {nodes: nodes.length, faults};
}
addEventListener('error', event => { document.body.dataset.check = `error: ${event.message}`; });
addEventListener('load', () => {
  if (document.body.dataset.check) return;
  const svg = document.querySelector('svg[data-nodes]'), faults = [];
  const look = (what, expected) => {
    const found = findFaults(svg);
    faults.push(...found.faults.map(fault => `${what}: ${fault}`));
    if (found.nodes !== expected)
      faults.push(`${what}: ${found.nodes} nodes are visible, not ${expected}`);
  };
  const drawn = +svg.dataset.nodes;
  look('drawn once', drawn);
  if (typeof setAll === 'function') {
    zoom(1);
    const inside = svg.querySelectorAll('.group .node').length;
    setAll('closed');
    look('closed', drawn - inside);
    setAll('all');
    if (!svg.querySelector('.group .group')) look('all', +svg.dataset.operations);
    setAll('open');
    look('open again', drawn);
  }
  document.body.dataset.check = faults.length ? faults.slice(0, 20).join('; ') : `ok ${drawn} nodes`;
});
