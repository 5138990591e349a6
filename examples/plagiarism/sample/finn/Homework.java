Dear teacher,

I could not finish exercise 7 because my computer broke. May I hand it in next week?

Finn
