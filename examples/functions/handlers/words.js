// A line of text becomes its words.
return payload.toLowerCase().match(/[a-z]+/g) || []
