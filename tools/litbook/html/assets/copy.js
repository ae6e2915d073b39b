// A selection that begins in a line of code and goes on to others is copied without the values beside them.
addEventListener("copy", (e) => {
  const chosen = getSelection(), part = chosen.rangeCount && chosen.getRangeAt(0).cloneContents();
  const lines = part ? [...part.querySelectorAll(".lb-c")] : [];
  if (lines.length < 2 || lines[0] !== part.firstElementChild) return;
  e.clipboardData.setData("text/plain", lines.map((line) => line.textContent).join("\n"));
  e.preventDefault();
});
