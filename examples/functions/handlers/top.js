// Counts become the word that is there most often.
const [word, times] = Object.entries(payload).sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]))[0]
console.log(`${word} is there ${times} times`)
return { word, times }
