// Keeps an open page up to date without losing text that the user is typing.
"use strict";
(() => {
  const line = document.getElementById("line");
  const MAX_FAILURES = 3;
  let source = null;
  let failures = 0;
  let hasEnded = false;
  let isRefreshing = false;
  let refreshAgain = false;

  const isField = (node) => node instanceof Element && node.matches("textarea, input");
  const isDirty = (field) => field.type !== "hidden" && field.value !== field.defaultValue;
  const isInUse = (node) =>
    (isField(document.activeElement) && node.contains(document.activeElement)) ||
    [...node.querySelectorAll("textarea, input")].some(isDirty);

  // Updates the children of [data-live] containers one by one, matched by id. Replaces all other elements as a whole.
  function merge(old, fresh) {
    if (old.isEqualNode(fresh)) return;
    if (old.hasAttribute("data-live") && fresh.hasAttribute("data-live")) return mergeParts(old, fresh);
    if (!isInUse(old)) replace(old, fresh);
  }

  function mergeParts(old, fresh) {
    const wanted = new Set([...fresh.children].map((part) => part.id));
    [...old.children].filter((part) => !wanted.has(part.id)).forEach(drop);
    const known = new Map([...old.children].map((part) => [part.id, part]));
    let place = old.firstElementChild;
    for (const part of [...fresh.children]) {
      while (place && !wanted.has(place.id)) place = place.nextElementSibling; // to be removed, but in use
      const before = known.get(part.id);
      if (before === undefined) {
        old.insertBefore(document.adoptNode(part), place);
      } else {
        if (before === place) place = place.nextElementSibling;
        else old.insertBefore(before, place);
        merge(before, part);
      }
    }
  }

  function replace(old, fresh) {
    for (const each of old.querySelectorAll("details[open]")) fresh.querySelector("#" + each.id)?.setAttribute("open", "");
    if (old.matches("details[open]")) fresh.setAttribute("open", "");
    const scrolled = [...old.querySelectorAll("pre[id]")].map((each) => [each.id, each.scrollTop, isAtEnd(each)]);
    old.replaceWith(document.adoptNode(fresh));
    for (const [id, top, atEnd] of scrolled) {
      const now = document.getElementById(id);
      if (now) now.scrollTop = atEnd ? now.scrollHeight : top;
    }
  }

  const isAtEnd = (node) => node.scrollTop + node.clientHeight >= node.scrollHeight - 4;

  // Removes an answered question. If the user is typing an answer, disables its form instead.
  function drop(part) {
    if (!isInUse(part)) return part.remove();
    if (part.hasAttribute("data-live")) return [...part.children].forEach(drop);
    if (!part.querySelector("form") || part.classList.contains("gone")) return;
    part.classList.add("gone");
    for (const button of part.querySelectorAll("button")) button.disabled = true;
    const note = document.createElement("p");
    note.className = "warning";
    note.textContent = "This question is no longer open. Your text is still here.";
    part.append(note);
  }

  async function refresh() {
    if (isRefreshing) return void (refreshAgain = true);
    isRefreshing = true;
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (answer.ok) {
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        const focused = document.activeElement?.id;
        merge(document.getElementById("main"), fresh.getElementById("main"));
        document.title = fresh.title;
        if (focused && document.activeElement === document.body) {
          document.getElementById(focused)?.focus({ preventScroll: true });
        }
        tick();
      }
    } catch {
      // The event stream notices when the dashboard has ended.
    }
    isRefreshing = false;
    if (refreshAgain) {
      refreshAgain = false;
      refresh();
    }
  }

  // The same as `format_duration` in layout.py.
  function duration(seconds) {
    const whole = Math.max(0, Math.round(seconds));
    const minutes = Math.floor(whole / 60);
    if (whole < 60) return `${whole} s`;
    return minutes < 60 ? `${minutes} min ${whole % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }

  function tick() {
    const now = Date.now() / 1000;
    for (const each of document.querySelectorAll("time[data-since]")) each.textContent = duration(now - each.dataset.since);
    for (const each of document.querySelectorAll("time[data-until]")) each.textContent = duration(each.dataset.until - now);
  }

  function open() {
    if (source !== null || hasEnded || document.hidden) return;
    source = new EventSource(document.body.dataset.stream);
    source.onopen = () => {
      failures = 0;
      line.textContent = "";
      refresh();
    };
    source.addEventListener("change", refresh);
    source.addEventListener("end", end);
    source.onerror = () => {
      failures += 1;
      if (failures >= MAX_FAILURES || source.readyState === EventSource.CLOSED) end();
      else line.textContent = "Reconnecting…";
    };
  }

  function close() {
    source?.close();
    source = null;
  }

  function end() {
    hasEnded = true;
    close();
    clearInterval(ticking);
    line.textContent = `The dashboard has stopped. This page shows the state at ${new Date().toLocaleTimeString()}.`;
  }

  const ticking = setInterval(tick, 1000);
  // Browsers limit the connections per host, so hidden pages close theirs.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  for (const each of document.querySelectorAll("pre[data-follow]")) each.scrollTop = each.scrollHeight;
  open();
})();
